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
  pigment("#4f7840", 120, 0.1, 0.4);
  dab(96, 92, 80, 140, 4, LEAF);
  pigment("#ef7a62", 140, 0.3, 0.2);
  ring(96, 92, 4, 68, 40, -90);
  pigment("#d43428", 120, 0.3, 0.4);
  ring(96, 92, 4, 56, 32, -90);
  pigment("#2c1a24", 160, 0.1, 0.2);
  dab(96, 92, -60, 24, 4, LEAF);
}
