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
const PETAL = [[0, 0], [1, -1], [1, 1]];
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
function flower(x, y, k) {
  pigment("#f8d95e", 180, 0.3, 0);
  ring(x, y, 5, 44 * k, 12 * k, -90);
  pigment("#f5c52e", 200, 0, 0);
  ring(x, y, 5, 24 * k, 8 * k, -80);
  pigment("#8a4a16", 120, 0.1, 0.2);
  lobes(x, y, 3, 4 * k, 2);
}
function draw() {
  translate(-96, -96);
  background("#dde6ea");
  brush.noStroke();
  pigment("#6f9450", 80, 0.1, 0.4);
  dab(84, 92, 90, 140, 4, LEAF);
  dab(84, 156, 50, 64, 8, LEAF);
  flower(36, 64, 0.4);
  flower(84, 92, 0.8);
}
