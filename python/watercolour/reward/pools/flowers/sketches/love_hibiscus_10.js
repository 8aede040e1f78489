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
function lobes(x, y, n, r, d) {
  brush.beginShape(0.5);
  for (let i = 0; i < n * 4; i++) {
    const k = r + d * cos(i * 90) + random(-d, d) / 2;
    brush.vertex(x + k * cos(i * 90 / n), y + k * sin(i * 90 / n));
  }
  brush.endShape(true);
}
function draw() {
  translate(-96, -96);
  background("#f7f2e8");
  brush.noStroke();
  pigment("#cfe3dc", 60, 0.4, 0.2);
  brush.circle(88, 80, 64);
  pigment("#6f9450", 80, 0.1, 0.4);
  dab(104, 76, 90, 140, 4, LEAF);
  dab(104, 116, 30, 80, 8, LEAF);
  dab(104, 128, 50, 56, 8, LEAF);
  pigment("#f9c6a8", 140, 0.3, 0.4);
  ring(104, 76, 6, 72, 40, 30);
  pigment("#f2906e", 180, 0.3, 0.6);
  ring(104, 76, 6, 52, 28, 40);
  pigment("#f2b632", 200, 0.1, 0.2);
  lobes(104, 76, 3, 8, 2);
}
