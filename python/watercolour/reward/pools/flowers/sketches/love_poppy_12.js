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
  background("#faf5ea");
  brush.noStroke();
  pigment("#d6e4cc", 60, 0.4, 0.2);
  brush.circle(100, 76, 64);
  pigment("#6f9450", 120, 0.1, 0.4);
  dab(96, 148, 150, 72, 12, LEAF);
  dab(96, 136, 30, 80, 16, LEAF);
  pigment("#f4927a", 100, 0.2, 0.2);
  ring(96, 84, 5, 68, 28, 10);
  pigment("#e04a36", 140, 0.3, 0.2);
  ring(96, 84, 5, 56, 24, 10);
  pigment("#86141f", 160, 0.2, 0.4);
  ring(96, 84, 5, 32, 12, 20);
  pigment("#2c1a24", 160, 0.1, 0.2);
  ring(96, 84, 6, 16, 4, 0);
}
