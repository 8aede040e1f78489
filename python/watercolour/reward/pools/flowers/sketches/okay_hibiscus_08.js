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
  pigment("#cfe3dc", 60, 0.3, 0.2);
  brush.circle(92, 68, 88);
  pigment("#6f9450", 120, 0.1, 0.4);
  dab(96, 76, 90, 140, 4, LEAF);
  dab(96, 140, 50, 80, 8, LEAF);
  dab(96, 128, 200, 72, 12, LEAF);
  pigment("#f7b090", 180, 0.3, 0.4);
  lobes(96, 76, 6, 44, 8);
  pigment("#ee7d5f", 180, 0.1, 0.4);
  lobes(96, 76, 6, 32, 8);
  pigment("#d4483f", 160, 0.2, 0.4);
  ring(96, 76, 6, 20, 12, -90);
  pigment("#f2b632", 180, 0.1, 0.2);
  dab(96, 76, -60, 24, 4, LEAF);
}
