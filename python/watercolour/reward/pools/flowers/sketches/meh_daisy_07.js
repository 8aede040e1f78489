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
const PETAL = [[0, -0.2], [0.6, -1], [0.9, -0.5], [1, 0.2], [0.6, 1], [0, 0.2]];
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
  background("#e8e0d0");
  brush.noStroke();
  pigment("#4f7840", 200, 0.1, 0.4);
  dab(104, 80, 90, 140, 4, LEAF);
  dab(104, 120, 30, 64, 16, LEAF);
  dab(104, 144, 50, 64, 12, LEAF);
  pigment("#6b5a48", 160, 0.4, 0.6);
  ring(104, 80, 4, 28, 16, 0);
  pigment("#8fb070", 180, 0.4, 0.6);
  ring(104, 80, 4, 24, 16, 0);
  pigment("#4f7840", 160, 0.4, 0.6);
  ring(104, 80, 4, 24, 12, 30);
  pigment("#7d1830", 180, 0.1, 0.2);
  lobes(104, 80, 3, 8, 2);
}
