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
const PETAL = [[0, 0], [0.5, -0.6], [0.8, -1], [1, 0], [0.8, 1], [0.5, 0.6]];
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
  pigment("#8fb070", 120, 0.1, 0.4);
  dab(92, 120, -20, 80, 8, LEAF);
  pigment("#fbe48c", 160, 0.2, 0.2);
  ring(92, 80, 7, 68, 16, -90);
  pigment("#efb31c", 160, 0.1, 0.2);
  ring(92, 80, 7, 56, 12, -90);
  pigment("#8a4a16", 160, 0.1, 0.2);
  ring(92, 80, 6, 12, 4, 0);
}
