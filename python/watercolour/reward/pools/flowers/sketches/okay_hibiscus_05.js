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
  pigment("#cfe3dc", 60, 0.4, 0.2);
  brush.circle(96, 72, 88);
  pigment("#8fb070", 100, 0.1, 0.4);
  dab(100, 88, 90, 140, 4, LEAF);
  dab(100, 140, 50, 64, 16, LEAF);
  dab(100, 152, -20, 56, 12, LEAF);
  pigment("#f9c6a8", 160, 0.2, 0.4);
  lobes(100, 88, 5, 60, 12);
  pigment("#f2906e", 180, 0.2, 0.4);
  lobes(100, 88, 5, 48, 8);
  pigment("#7d1830", 180, 0.1, 0.2);
  dab(100, 88, -60, 24, 4, LEAF);
}
