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
function fan(x, y, n, l, w, from, to) {
  for (let i = 0; i < n; i++) {
    dab(x, y, map(i, 0, n - 1, from, to), l * random(0.8, 1.1), w, PETAL);
  }
}
function draw() {
  translate(-96, -96);
  background("#f7f2e8");
  brush.noStroke();
  pigment("#d3dcf4", 60, 0.4, 0.2);
  brush.circle(96, 72, 64);
  pigment("#6f9450", 80, 0.1, 0.4);
  dab(84, 144, 50, 64, 16, LEAF);
  dab(84, 120, 150, 80, 8, LEAF);
  pigment("#8ea2e6", 180, 0.2, 0.2);
  fan(84, 80, 3, 68, 32, 25, 155);
  fan(84, 80, 3, 68, 32, -125, -55);
  pigment("#5f78d8", 120, 0.3, 0.6);
  fan(84, 80, 3, 48, 24, 25, 155);
  fan(84, 80, 3, 48, 24, -125, -55);
  pigment("#4b2f8f", 160, 0.2, 0.4);
  fan(84, 80, 3, 24, 12, 25, 155);
  pigment("#f2c23a", 180, 0.1, 0.2);
  dab(84, 80, -60, 32, 4, LEAF);
}
