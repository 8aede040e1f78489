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
const PETAL = [[0, 0], [0.4, -1], [0.7, -0.8], [0.9, -1], [1, 0], [0.8, 0.2], [1, 0.6], [0.5, 1]];
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
  pigment("#f6d6c8", 60, 0.3, 0.2);
  brush.circle(100, 72, 76);
  pigment("#6f9450", 80, 0.1, 0.4);
  dab(96, 84, 80, 140, 4, LEAF);
  dab(96, 148, 50, 72, 12, LEAF);
  dab(96, 136, 30, 64, 12, LEAF);
  pigment("#f4927a", 140, 0.2, 0.4);
  ring(96, 84, 4, 72, 28, -70);
  pigment("#d43428", 200, 0.1, 0.4);
  ring(96, 84, 4, 52, 20, -60);
  pigment("#86141f", 180, 0.2, 0.6);
  ring(96, 84, 4, 24, 8, -60);
  pigment("#2c1a24", 200, 0.1, 0.2);
  dab(96, 84, -60, 32, 4, LEAF);
}
