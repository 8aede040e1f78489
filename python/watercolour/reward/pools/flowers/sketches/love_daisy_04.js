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
  background("#fdfaf2");
  brush.noStroke();
  pigment("#cfe4ee", 60, 0.4, 0.2);
  brush.circle(88, 68, 64);
  pigment("#6f9450", 80, 0.1, 0.4);
  dab(88, 84, 80, 140, 4, LEAF);
  dab(88, 136, 200, 80, 12, LEAF);
  pigment("#f8d95e", 140, 0.3, 0.4);
  ring(88, 84, 9, 56, 16, 20);
  pigment("#f5c52e", 140, 0.3, 0.2);
  ring(88, 84, 9, 40, 12, 20);
  pigment("#8a4a16", 180, 0.1, 0.2);
  lobes(88, 84, 3, 10, 2);
}
