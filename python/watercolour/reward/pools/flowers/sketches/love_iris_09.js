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
  pigment("#e6dcf0", 40, 0.3, 0.2);
  brush.circle(88, 88, 64);
  pigment("#4f7840", 120, 0.1, 0.4);
  dab(100, 80, 90, 140, 4, LEAF);
  dab(100, 132, -20, 72, 16, LEAF);
  dab(100, 144, 130, 80, 12, LEAF);
  pigment("#8ea2e6", 100, 0.3, 0.2);
  fan(100, 104, 5, 72, 40, -140, -30);
  pigment("#4a5fc4", 200, 0.2, 0.4);
  fan(100, 104, 5, 52, 28, -140, -30);
  pigment("#f2c23a", 180, 0.1, 0.2);
  dab(100, 100, -60, 32, 4, LEAF);
}
