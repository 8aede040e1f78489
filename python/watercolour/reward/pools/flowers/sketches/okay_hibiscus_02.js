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
const PETAL = [[0, 0], [0.5, -1], [0.8, -0.9], [1, -0.1], [0.8, 0.5], [0.9, 0.9], [0.4, 0.9]];
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
  pigment("#cfe3dc", 60, 0.4, 0.2);
  brush.circle(96, 84, 64);
  pigment("#4f7840", 120, 0.1, 0.4);
  dab(88, 84, 90, 140, 4, LEAF);
  dab(88, 124, 130, 80, 12, LEAF);
  dab(88, 148, 150, 80, 8, LEAF);
  pigment("#f7b090", 100, 0.3, 0.2);
  ring(88, 84, 6, 68, 32, 10);
  pigment("#ee7d5f", 140, 0.2, 0.2);
  ring(88, 84, 6, 48, 24, 10);
  pigment("#7d1830", 200, 0.1, 0.2);
  dab(88, 84, -60, 32, 4, LEAF);
}
