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
  pigment("#fbe48c", 100, 0.2, 0.4);
  lobes(x, y, 7, 60 * k, 16 * k);
  pigment("#f5c52e", 160, 0.1, 0.2);
  lobes(x, y, 7, 40 * k, 12 * k);
  pigment("#5c3014", 160, 0.1, 0.2);
  lobes(x, y, 3, 10 * k, 2);
}
function draw() {
  translate(-96, -96);
  background("#f7f2e8");
  brush.noStroke();
  pigment("#6f9450", 100, 0.1, 0.4);
  dab(84, 84, 80, 140, 4, LEAF);
  dab(84, 124, 200, 64, 16, LEAF);
  dab(84, 124, -20, 56, 16, LEAF);
  flower(92, 148, 0.4);
  flower(132, 120, 0.5);
  flower(84, 84, 0.8);
}
