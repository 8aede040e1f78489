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
const PETAL = [[0, -0.2], [0.6, -1], [0.9, -0.5], [1, 0.2], [0.6, 1], [0, 0.2]];
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
  pigment("#6f9450", 100, 0.1, 0.4);
  dab(92, 92, 100, 140, 4, LEAF);
  dab(92, 144, 130, 72, 12, LEAF);
  dab(92, 156, 150, 80, 12, LEAF);
  pigment("#fbe48c", 140, 0.3, 0.2);
  ring(92, 92, 8, 56, 12, 0);
  pigment("#efb31c", 200, 0.1, 0.6);
  ring(92, 92, 8, 40, 8, 10);
  pigment("#5c3014", 160, 0.1, 0.2);
  ring(92, 92, 6, 12, 4, 0);
}
