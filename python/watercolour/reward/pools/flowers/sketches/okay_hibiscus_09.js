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
function flower(x, y, k) {
  pigment("#f9c6a8", 180, 0.3, 0.4);
  ring(x, y, 5, 60 * k, 32 * k, 10);
  pigment("#f2906e", 180, 0.1, 0.2);
  ring(x, y, 5, 48 * k, 24 * k, 20);
  pigment("#f2b632", 160, 0.1, 0.2);
  lobes(x, y, 3, 10 * k, 2);
}
function draw() {
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  pigment("#fbdcc4", 40, 0.3, 0.2);
  brush.circle(108, 96, 76);
  pigment("#6f9450", 100, 0.1, 0.4);
  dab(100, 80, 90, 140, 4, LEAF);
  dab(100, 144, -20, 64, 8, LEAF);
  flower(56, 124, 0.4);
  flower(100, 80, 0.7);
}
