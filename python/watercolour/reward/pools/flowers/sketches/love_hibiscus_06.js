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
const PETAL = [[0, 0], [0.4, -1], [0.7, -0.8], [0.9, -1], [1, 0], [0.8, 0.2], [1, 0.6], [0.5, 1]];
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
  pigment("#cfe3dc", 40, 0.3, 0.2);
  brush.circle(92, 88, 88);
  pigment("#8fb070", 100, 0.1, 0.4);
  dab(104, 84, 100, 140, 4, LEAF);
  dab(104, 148, 30, 64, 8, LEAF);
  dab(104, 124, 150, 64, 12, LEAF);
  pigment("#f9c6a8", 100, 0.3, 0.4);
  ring(104, 84, 6, 60, 28, 30);
  pigment("#f2906e", 200, 0.3, 0.6);
  ring(104, 84, 6, 48, 24, 30);
  pigment("#b8304a", 220, 0.1, 0.6);
  ring(104, 84, 6, 20, 8, 40);
  pigment("#7d1830", 180, 0.1, 0.2);
  ring(104, 84, 6, 16, 4, 0);
}
