function setup() {
  createCanvas(192, 192, WEBGL);
  angleMode(DEGREES);
  brush.scaleBrushes(1);
  noLoop();
}
function pigment(color, opacity, bleed, texture) {
  brush.noFill();
  brush.wash(color, opacity);
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
  pigment("#4f7840", 255, 0.1, 0.4);
  dab(76, 92, 80, 140, 4, LEAF);
  pigment("#ee7d5f", 255, 0, 0);
  lobes(76, 92, 5, 40, 8);
  pigment("#f2b632", 120, 0.1, 0.2);
  dab(76, 92, -60, 32, 4, LEAF);
}
