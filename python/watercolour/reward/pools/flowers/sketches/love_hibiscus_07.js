function setup() {
  createCanvas(192, 192, WEBGL);
  angleMode(DEGREES);
  brush.scaleBrushes(1);
  noLoop();
}
function pigment(color, opacity, bleed, texture) {
  brush.fill(color, opacity);
  brush.fillBleed(bleed);
  brush.fillTexture(texture, 0.4);
}
const PETAL = [[0, 0], [0.5, -1], [0.8, -0.9], [1, -0.1], [0.8, 0.5], [0.9, 0.9], [0.4, 0.9]];
const LEAF = [[0, 0], [0.4, 1], [1, 0], [0.4, -1]];
function dab(x, y, a, l, w, edge) {
  const c = cos(a), s = sin(a);
  brush.beginShape(0.5);
  for (const [u, v] of edge) brush.vertex(x + l * u * c - w * v * s, y + l * u * s + w * v * c);
  brush.endShape(true);
}
function ring(x, y, n, l, w, turn) {
  for (let i = 0; i < n; i++) {
    dab(x, y, turn + i * 360 / n + random(-9, 9), l * random(0.8, 1.1), w, PETAL);
  }
}
function draw() {
  translate(-96, -96);
  background("#fdfaf2");
  brush.noStroke();
  pigment("#fbdcc4", 60, 0.4, 0.2);
  brush.circle(92, 64, 64);
  pigment("#6f9450", 120, 0.1, 0.4);
  dab(104, 80, 80, 140, 4, LEAF);
  dab(104, 144, -20, 80, 8, LEAF);
  dab(104, 132, 50, 72, 8, LEAF);
  pigment("#f9c6a8", 120, 0.2, 0.2);
  ring(104, 80, 5, 72, 36, 10);
  pigment("#f2906e", 200, 0.1, 0.6);
  ring(104, 80, 5, 56, 28, 20);
  pigment("#d4483f", 180, 0.2, 0.6);
  ring(104, 80, 5, 24, 12, 10);
  pigment("#7d1830", 200, 0.1, 0.2);
  ring(104, 80, 6, 20, 4, 0);
}
