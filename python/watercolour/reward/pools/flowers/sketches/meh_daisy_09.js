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
  pigment("#4f7840", 180, 0.4, 0.6);
  lobes(x, y, 4, 28 * k, 8 * k);
  pigment("#5a6152", 200, 0.4, 0.6);
  lobes(x, y, 4, 24 * k, 8 * k);
  pigment("#5c3014", 180, 0.1, 0.2);
  lobes(x, y, 3, 12 * k, 2);
}
function draw() {
  translate(-96, -96);
  background("#f7f2e8");
  brush.noStroke();
  pigment("#4f7840", 140, 0.1, 0.4);
  dab(108, 108, 90, 140, 4, LEAF);
  dab(108, 160, 130, 64, 12, LEAF);
  flower(152, 68, 0.5);
  flower(116, 172, 0.4);
  flower(64, 152, 0.4);
  flower(108, 108, 0.7);
}
