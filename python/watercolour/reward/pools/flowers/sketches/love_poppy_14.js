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
const PETAL = [[0, 0], [0.4, -0.8], [0.9, -1], [1, -0.4], [0.8, 0], [1, 0.5], [0.8, 1], [0.4, 0.7]];
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
  background("#faf5ea");
  brush.noStroke();
  pigment("#f6d6c8", 40, 0.3, 0.2);
  brush.circle(92, 96, 76);
  pigment("#8fb070", 100, 0.1, 0.4);
  dab(104, 80, 90, 140, 4, LEAF);
  dab(104, 132, 30, 72, 12, LEAF);
  dab(104, 120, 130, 80, 16, LEAF);
  pigment("#ef7a62", 160, 0.2, 0.4);
  lobes(104, 80, 5, 56, 12);
  pigment("#d43428", 160, 0.2, 0.6);
  lobes(104, 80, 5, 44, 8);
  pigment("#86141f", 200, 0.2, 0.4);
  ring(104, 80, 5, 32, 16, 30);
  pigment("#2c1a24", 160, 0.1, 0.2);
  lobes(104, 80, 3, 10, 2);
}
