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
  background("#fdfaf2");
  brush.noStroke();
  pigment("#cfe3dc", 40, 0.3, 0.2);
  brush.circle(100, 76, 76);
  pigment("#4f7840", 100, 0.1, 0.4);
  dab(92, 80, 80, 140, 4, LEAF);
  dab(92, 120, 150, 80, 8, LEAF);
  dab(92, 144, -20, 56, 12, LEAF);
  pigment("#f7b090", 160, 0.2, 0.2);
  ring(92, 80, 5, 72, 36, -90);
  pigment("#f2906e", 160, 0.2, 0.6);
  ring(92, 80, 5, 52, 24, -80);
  pigment("#f2b632", 160, 0.1, 0.2);
  dab(92, 80, -60, 24, 4, LEAF);
}
