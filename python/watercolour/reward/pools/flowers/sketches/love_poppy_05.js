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
const PETAL = [[0, 0], [0.4, -1], [0.7, -0.8], [0.9, -1], [1, 0], [0.8, 0.2], [1, 0.6], [0.5, 1]];
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
  pigment("#d6e4cc", 40, 0.3, 0.2);
  brush.circle(96, 68, 76);
  pigment("#6f9450", 80, 0.1, 0.4);
  dab(84, 76, 100, 140, 4, LEAF);
  dab(84, 116, 30, 56, 16, LEAF);
  dab(84, 116, -20, 56, 8, LEAF);
  pigment("#f4927a", 140, 0.3, 0.2);
  lobes(84, 76, 5, 60, 12);
  pigment("#e04a36", 120, 0.3, 0.4);
  lobes(84, 76, 5, 40, 8);
  pigment("#a81c22", 160, 0.1, 0.4);
  ring(84, 76, 5, 36, 16, -70);
  pigment("#4a4a2a", 200, 0.1, 0.2);
  lobes(84, 76, 3, 8, 2);
}
