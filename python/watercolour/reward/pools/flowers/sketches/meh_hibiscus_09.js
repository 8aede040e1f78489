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
const PETAL = [[0, 0], [0.5, -0.6], [0.8, -1], [1, 0], [0.8, 1], [0.5, 0.6]];
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
  pigment("#6f9450", 160, 0.4, 0.6);
  fan(88, 144, 4, 44, 28, -150, -30);
  pigment("#4f7840", 160, 0.4, 0.6);
  fan(88, 144, 4, 40, 24, -140, -30);
  pigment("#6b5a48", 180, 0.4, 0.6);
  fan(88, 144, 4, 36, 24, -140, -30);
  pigment("#f2b632", 120, 0.1, 0.2);
  dab(88, 140, -60, 16, 4, LEAF);
}
