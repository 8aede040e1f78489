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
  background("#f7f2e8");
  brush.noStroke();
  pigment("#e6dcf0", 60, 0.4, 0.2);
  brush.circle(104, 96, 88);
  pigment("#8fb070", 100, 0.1, 0.4);
  dab(100, 92, 100, 140, 4, LEAF);
  pigment("#a9b8ec", 160, 0.2, 0.2);
  fan(100, 92, 3, 72, 36, 25, 155);
  fan(100, 92, 3, 72, 36, -125, -55);
  pigment("#5f78d8", 160, 0.2, 0.4);
  fan(100, 92, 3, 56, 28, 25, 155);
  fan(100, 92, 3, 56, 28, -125, -55);
  pigment("#33409c", 220, 0.2, 0.6);
  fan(100, 92, 3, 24, 12, 25, 155);
  pigment("#2a2468", 180, 0.1, 0.2);
  lobes(100, 92, 3, 10, 2);
}
