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
  background("#f7f2e8");
  brush.noStroke();
  pigment("#4f7840", 80, 0.1, 0.4);
  dab(104, 80, 90, 140, 4, LEAF);
  dab(104, 144, 150, 64, 16, LEAF);
  pigment("#8ea2e6", 160, 0.3, 0.4);
  ring(104, 80, 5, 64, 24, -70);
  pigment("#4a5fc4", 120, 0.1, 0.6);
  ring(104, 80, 5, 52, 20, -70);
  pigment("#33409c", 220, 0.2, 0.4);
  ring(104, 80, 5, 28, 12, -60);
  pigment("#f2c23a", 180, 0.1, 0.2);
  ring(104, 80, 6, 12, 4, 0);
}
