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
  pigment("#f6d6c8", 60, 0.3, 0.2);
  brush.circle(80, 92, 88);
  pigment("#8fb070", 100, 0.1, 0.4);
  dab(92, 132, 130, 80, 12, LEAF);
  dab(92, 120, 50, 64, 8, LEAF);
  pigment("#ef7a62", 180, 0.2, 0.2);
  lobes(92, 80, 4, 56, 12);
  pigment("#e04a36", 180, 0.3, 0.4);
  lobes(92, 80, 4, 44, 8);
  pigment("#4a4a2a", 200, 0.1, 0.2);
  dab(92, 80, -60, 40, 4, LEAF);
}
