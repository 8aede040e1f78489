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
const PETAL = [[0, 0], [0.4, -0.8], [0.8, -1], [1, -0.4], [1, 0.4], [0.8, 1], [0.4, 0.8]];
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
  background("#faf5ea");
  brush.noStroke();
  pigment("#fbdcc4", 40, 0.3, 0.2);
  brush.circle(80, 104, 76);
  pigment("#8fb070", 120, 0.1, 0.4);
  dab(88, 92, 80, 140, 4, LEAF);
  dab(88, 144, 30, 64, 16, LEAF);
  dab(88, 144, 150, 72, 12, LEAF);
  pigment("#f7b090", 140, 0.3, 0.2);
  ring(88, 92, 5, 68, 28, 20);
  pigment("#f2906e", 120, 0.2, 0.4);
  ring(88, 92, 5, 48, 20, 30);
  pigment("#7d1830", 160, 0.1, 0.2);
  ring(88, 92, 6, 16, 4, 0);
}
