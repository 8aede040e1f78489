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
    dab(x, y, turn + i * 360 / n + random(-9, 9), l * random(0.8, 1.1), w, PETAL);
  }
}
function draw() {
  translate(-96, -96);
  background("#fdfaf2");
  brush.noStroke();
  pigment("#4f7840", 120, 0.1, 0.4);
  dab(92, 88, 90, 140, 4, LEAF);
  pigment("#fbe48c", 140, 0.2, 0.4);
  ring(92, 88, 9, 72, 20, -70);
  pigment("#f5c52e", 160, 0.2, 0.2);
  ring(92, 88, 9, 52, 16, -70);
  pigment("#5c3014", 180, 0.1, 0.2);
  dab(92, 88, -60, 40, 4, LEAF);
}
