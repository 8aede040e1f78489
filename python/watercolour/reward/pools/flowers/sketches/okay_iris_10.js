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
function fan(x, y, n, l, w, from, to) {
  for (let i = 0; i < n; i++) {
    dab(x, y, map(i, 0, n - 1, from, to), l * random(0.8, 1.1), w, PETAL);
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
  pigment("#8fb070", 120, 0.1, 0.4);
  dab(96, 92, 90, 140, 4, LEAF);
  dab(96, 156, 30, 72, 16, LEAF);
  dab(96, 156, 50, 64, 8, LEAF);
  pigment("#a9b8ec", 100, 0.2, 0.2);
  fan(96, 116, 5, 64, 32, -140, -30);
  pigment("#5f78d8", 180, 0.1, 0.6);
  fan(96, 116, 5, 52, 24, -150, -30);
  pigment("#2a2468", 180, 0.1, 0.2);
  lobes(96, 112, 3, 6, 2);
}
