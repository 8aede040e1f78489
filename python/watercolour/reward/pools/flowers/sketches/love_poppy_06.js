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
function draw() {
  translate(-96, -96);
  background("#f7f2e8");
  brush.noStroke();
  pigment("#d6e4cc", 40, 0.4, 0.2);
  brush.circle(104, 72, 88);
  pigment("#4f7840", 80, 0.1, 0.4);
  dab(100, 80, 100, 140, 4, LEAF);
  dab(100, 132, -20, 72, 12, LEAF);
  dab(100, 144, 150, 80, 8, LEAF);
  pigment("#f4927a", 140, 0.2, 0.2);
  ring(100, 80, 4, 72, 36, -70);
  pigment("#d43428", 140, 0.3, 0.6);
  ring(100, 80, 4, 56, 28, -60);
  pigment("#4a4a2a", 180, 0.1, 0.2);
  ring(100, 80, 6, 20, 4, 0);
}
