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
  pigment("#cfe4ee", 60, 0.4, 0.2);
  brush.circle(100, 92, 76);
  pigment("#8fb070", 80, 0.1, 0.4);
  dab(88, 92, 80, 140, 4, LEAF);
  dab(88, 156, 30, 80, 12, LEAF);
  dab(88, 132, 200, 72, 16, LEAF);
  pigment("#f8d95e", 120, 0.2, 0.4);
  ring(88, 92, 7, 76, 12, -70);
  pigment("#efb31c", 160, 0.3, 0.6);
  ring(88, 92, 7, 60, 8, -60);
  pigment("#5c3014", 160, 0.1, 0.2);
  dab(88, 92, -60, 40, 4, LEAF);
}
