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
function flower(x, y, k) {
  pigment("#efb31c", 200, 0.1, 0.2);
  ring(x, y, 4, 24 * k, 10 * k, 0);
}
function draw() {
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  flower(32, 32, 1);
  flower(96, 32, 1);
  flower(160, 32, 1);
  flower(32, 96, 1);
  flower(96, 96, 1);
  flower(160, 96, 1);
  flower(32, 160, 1);
  flower(96, 160, 1);
  flower(160, 160, 1);
}
