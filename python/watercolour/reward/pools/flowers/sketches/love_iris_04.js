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
function fan(x, y, n, l, w, from, to) {
  for (let i = 0; i < n; i++) {
    dab(x, y, map(i, 0, n - 1, from, to), l * random(0.8, 1.1), w, PETAL);
  }
}
function draw() {
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  pigment("#4f7840", 80, 0.1, 0.4);
  dab(84, 84, 90, 140, 4, LEAF);
  dab(84, 124, 50, 64, 12, LEAF);
  dab(84, 124, 150, 64, 12, LEAF);
  pigment("#8ea2e6", 180, 0.2, 0.4);
  fan(84, 84, 3, 72, 36, 25, 155);
  fan(84, 84, 3, 72, 36, -125, -55);
  pigment("#5f78d8", 120, 0.1, 0.2);
  fan(84, 84, 3, 56, 28, 25, 155);
  fan(84, 84, 3, 56, 28, -125, -55);
  pigment("#4b2f8f", 220, 0.1, 0.4);
  fan(84, 84, 3, 24, 12, 25, 155);
  pigment("#2a2468", 160, 0.1, 0.2);
  dab(84, 84, -60, 40, 4, LEAF);
}
