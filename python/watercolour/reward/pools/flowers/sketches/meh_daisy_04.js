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
    dab(x, y, turn + i * 360 / n, l, w, PETAL);
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
function flower(x, y, k) {
  pigment("#fbe48c", 60, 0.3, 0);
  ring(x, y, 5, 52 * k, 8 * k, -90);
  pigment("#d98e14", 200, 0.2, 0);
  ring(x, y, 5, 24 * k, 4 * k, -60);
  pigment("#5c3014", 180, 0.1, 0.2);
  lobes(x, y, 3, 6 * k, 2);
}
function draw() {
  translate(-96, -96);
  background("#e8e0d0");
  brush.noStroke();
  pigment("#6f9450", 80, 0.1, 0.4);
  dab(112, 64, 100, 140, 4, LEAF);
  flower(120, 128, 0.3);
  flower(112, 64, 0.7);
}
