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
function ring(x, y, n, l, w, turn) {
  for (let i = 0; i < n; i++) {
    dab(x, y, turn + i * 360 / n, l, w, PETAL);
  }
}
function draw() {
  translate(-96, -96);
  background("#e8e0d0");
  brush.noStroke();
  pigment("#4f7840", 140, 0.1, 0.4);
  dab(76, 108, 90, 140, 4, LEAF);
  dab(76, 160, 50, 64, 16, LEAF);
  dab(76, 172, 130, 80, 12, LEAF);
  pigment("#f5c52e", 100, 0.2, 0);
  ring(76, 108, 4, 36, 8, 0);
  pigment("#f5c52e", 120, 0.1, 0);
  ring(76, 108, 4, 28, 8, 30);
  pigment("#5c3014", 180, 0.1, 0.2);
  dab(76, 108, -60, 24, 4, LEAF);
}
