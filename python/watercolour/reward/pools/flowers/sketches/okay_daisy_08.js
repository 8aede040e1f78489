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
  brush.circle(80, 80, 64);
  pigment("#8fb070", 120, 0.1, 0.4);
  dab(96, 92, 100, 140, 4, LEAF);
  pigment("#f8d95e", 120, 0.3, 0.2);
  ring(96, 92, 7, 68, 12, 30);
  pigment("#f5c52e", 160, 0.1, 0.4);
  ring(96, 92, 7, 48, 8, 40);
  pigment("#5c3014", 160, 0.1, 0.2);
  ring(96, 92, 6, 20, 4, 0);
}
