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
const LEAF = [[0, 0], [0.4, 1], [1, 0], [0.4, -1]];
function dab(x, y, a, l, w, edge) {
  const c = cos(a), s = sin(a);
  brush.beginShape(0.5);
  for (const [u, v] of edge) brush.vertex(x + l * u * c - w * v * s, y + l * u * s + w * v * c);
  brush.endShape(true);
}
function lobes(x, y, n, r, d) {
  brush.beginShape(0.5);
  for (let i = 0; i < n * 4; i++) {
    const k = r + d * cos(i * 90) + random(-d, d) / 2;
    brush.vertex(x + k * cos(i * 90 / n), y + k * sin(i * 90 / n));
  }
  brush.endShape(true);
}
function flower(x, y, k) {
  pigment("#fbe48c", 120, 0.3, 0.2);
  lobes(x, y, 9, 56 * k, 12 * k);
  pigment("#f5c52e", 200, 0.3, 0.6);
  lobes(x, y, 9, 44 * k, 12 * k);
  pigment("#8a4a16", 160, 0.1, 0.2);
  lobes(x, y, 3, 8 * k, 2);
}
function draw() {
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  pigment("#8fb070", 80, 0.1, 0.4);
  dab(92, 80, 80, 140, 4, LEAF);
  flower(140, 116, 0.5);
  flower(136, 40, 0.3);
  flower(92, 80, 0.7);
}
