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
  pigment("#ef7a62", 60, 0.3, 0.2);
  lobes(x, y, 3, 28 * k, 8 * k);
  pigment("#e04a36", 80, 0.1, 0.2);
  lobes(x, y, 3, 24 * k, 4 * k);
  pigment("#4a4a2a", 240, 0.1, 0.2);
  lobes(x, y, 3, 12 * k, 2);
}
function draw() {
  translate(-96, -96);
  background("#fdfaf2");
  brush.noStroke();
  pigment("#4f7840", 80, 0.1, 0.4);
  dab(72, 92, 80, 140, 4, LEAF);
  dab(72, 132, 200, 56, 8, LEAF);
  flower(24, 64, 0.3);
  flower(28, 136, 0.6);
  flower(72, 92, 0.7);
}
