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
  pigment("#d6e4cc", 60, 0.3, 0.2);
  brush.circle(116, 92, 64);
  pigment("#8fb070", 200, 0.1, 0.4);
  dab(120, 100, 100, 140, 4, LEAF);
  pigment("#ef7a62", 180, 0.3, 0.2);
  ring(120, 100, 4, 44, 8, 20);
  pigment("#4a4a2a", 240, 0.1, 0.2);
  dab(120, 100, -60, 48, 4, LEAF);
}
