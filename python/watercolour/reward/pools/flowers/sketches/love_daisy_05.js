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
  background("#faf5ea");
  brush.noStroke();
  pigment("#fbf0c4", 40, 0.4, 0.2);
  brush.circle(68, 100, 76);
  pigment("#4f7840", 100, 0.1, 0.4);
  dab(84, 136, 130, 64, 12, LEAF);
  pigment("#f8d95e", 160, 0.3, 0.4);
  ring(84, 84, 8, 72, 20, -90);
  pigment("#efb31c", 140, 0.3, 0.4);
  ring(84, 84, 8, 52, 16, -90);
  pigment("#8a4a16", 160, 0.1, 0.2);
  ring(84, 84, 6, 12, 4, 0);
}
