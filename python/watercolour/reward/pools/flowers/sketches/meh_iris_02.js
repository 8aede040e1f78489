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
  background("#dde6ea");
  brush.noStroke();
  pigment("#4f7840", 255, 0.1, 0.4);
  dab(92, 84, 90, 140, 4, LEAF);
  pigment("#4a5fc4", 230, 0, 0);
  lobes(92, 84, 5, 48, 8);
  pigment("#33409c", 255, 0, 0);
  lobes(92, 84, 5, 32, 8);
  pigment("#2a2468", 120, 0.1, 0.2);
  dab(92, 84, -60, 48, 4, LEAF);
}
