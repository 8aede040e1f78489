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
const LEAF = [[0, 0], [0.4, 1], [1, 0], [0.4, -1]];
function dab(x, y, a, l, w, edge) {
  const c = cos(a), s = sin(a);
  brush.beginShape(0.5);
  for (const [u, v] of edge) brush.vertex(x + l * u * c - w * v * s, y + l * u * s + w * v * c);
  brush.endShape(true);
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
  background("#faf5ea");
  brush.noStroke();
  pigment("#e6dcf0", 60, 0.3, 0.2);
  brush.circle(104, 108, 76);
  pigment("#8fb070", 100, 0.1, 0.4);
  dab(88, 92, 100, 140, 4, LEAF);
  dab(88, 156, 200, 56, 16, LEAF);
  dab(88, 144, 150, 64, 8, LEAF);
  pigment("#a9b8ec", 140, 0.2, 0.2);
  lobes(88, 92, 6, 44, 8);
  pigment("#5f78d8", 200, 0.3, 0.2);
  lobes(88, 92, 6, 36, 8);
  pigment("#f2c23a", 160, 0.1, 0.2);
  dab(88, 92, -60, 24, 4, LEAF);
}
