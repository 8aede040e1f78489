function setup() {
  createCanvas(192, 192, WEBGL);
  angleMode(DEGREES);
  brush.scaleBrushes(1);
  noLoop();
}
function pigment(color, opacity, bleed, texture) {
  brush.noFill();
  brush.wash(color, opacity);
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
    dab(x, y, turn + i * 360 / n, l, w, PETAL);
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
  background("#fdfaf2");
  brush.noStroke();
  pigment("#d6e4cc", 100, 0.1, 0.2);
  brush.circle(16, -8, 88);
  pigment("#6f9450", 255, 0.1, 0.4);
  dab(16, 64, 130, 56, 16, LEAF);
  dab(16, 52, 50, 80, 16, LEAF);
  pigment("#f4927a", 240, 0, 0);
  ring(16, 0, 5, 28, 8, 20);
  pigment("#4a4a2a", 180, 0.1, 0.2);
  lobes(16, 0, 3, 6, 2);
}
