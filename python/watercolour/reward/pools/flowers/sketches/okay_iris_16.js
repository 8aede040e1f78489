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
const PETAL = [[0, 0], [0.4, -0.8], [0.8, -1], [1, -0.4], [1, 0.4], [0.8, 1], [0.4, 0.8]];
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
  background("#f7f2e8");
  brush.noStroke();
  pigment("#4f7840", 200, 0.1, 0.4);
  dab(128, 104, 30, 80, 16, LEAF);
  pigment("#a9b8ec", 100, 0.2, 0.2);
  fan(128, 64, 3, 60, 32, 25, 155);
  fan(128, 64, 3, 60, 32, -125, -55);
  pigment("#4b2f8f", 200, 0.1, 0.2);
  fan(128, 64, 3, 40, 24, 25, 155);
  fan(128, 64, 3, 40, 24, -125, -55);
  pigment("#f2c23a", 180, 0.1, 0.2);
  dab(128, 64, -60, 32, 4, LEAF);
}
