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
function draw() {
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  pigment("#8fb070", 140, 0.1, 0.4);
  dab(0, 240, 50, 64, 8, LEAF);
  pigment("#a9b8ec", 140, 0.2, 0);
  fan(0, 176, 3, 36, 20, 25, 155);
  fan(0, 176, 3, 36, 20, -125, -55);
  pigment("#4a5fc4", 80, 0.2, 0);
  fan(0, 176, 3, 24, 16, 25, 155);
  fan(0, 176, 3, 24, 16, -125, -55);
  pigment("#2a2468", 120, 0.1, 0.2);
  dab(0, 176, -60, 48, 4, LEAF);
}
