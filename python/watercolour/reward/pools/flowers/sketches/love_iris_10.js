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
function lobes(x, y, n, r, d) {
  brush.beginShape(0.5);
  for (let i = 0; i < n * 4; i++) {
    const k = r + d * cos(i * 90) + random(-d, d) / 2;
    brush.vertex(x + k * cos(i * 90 / n), y + k * sin(i * 90 / n));
  }
  brush.endShape(true);
}
function draw() {
  translate(-96, -96);
  background("#f7f2e8");
  brush.noStroke();
  pigment("#6f9450", 120, 0.1, 0.4);
  dab(92, 80, 90, 140, 4, LEAF);
  dab(92, 144, 50, 56, 8, LEAF);
  dab(92, 144, 30, 56, 12, LEAF);
  pigment("#8ea2e6", 100, 0.3, 0.2);
  ring(92, 80, 6, 76, 32, 30);
  pigment("#4a5fc4", 180, 0.3, 0.2);
  ring(92, 80, 6, 52, 24, 40);
  pigment("#4b2f8f", 160, 0.2, 0.4);
  ring(92, 80, 6, 36, 16, 40);
  pigment("#f2c23a", 200, 0.1, 0.2);
  lobes(92, 80, 3, 6, 2);
}
