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
  background("#dde6ea");
  brush.noStroke();
  pigment("#6f9450", 200, 0.1, 0.4);
  dab(76, 168, 130, 56, 12, LEAF);
  dab(76, 156, 200, 56, 12, LEAF);
  pigment("#4a5fc4", 60, 0.2, 0.4);
  fan(76, 116, 3, 44, 20, 25, 155);
  fan(76, 116, 3, 44, 20, -125, -55);
  pigment("#f2c23a", 180, 0.1, 0.2);
  dab(76, 116, -60, 16, 4, LEAF);
}
