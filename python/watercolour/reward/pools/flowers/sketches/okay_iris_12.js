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
  background("#fdfaf2");
  brush.noStroke();
  pigment("#d3dcf4", 40, 0.4, 0.2);
  brush.circle(80, 84, 64);
  pigment("#6f9450", 100, 0.1, 0.4);
  dab(88, 84, 100, 140, 4, LEAF);
  dab(88, 136, -20, 64, 16, LEAF);
  dab(88, 124, 50, 80, 16, LEAF);
  pigment("#a9b8ec", 180, 0.2, 0.4);
  lobes(88, 84, 5, 52, 8);
  pigment("#4a5fc4", 160, 0.3, 0.2);
  lobes(88, 84, 5, 40, 8);
  pigment("#f2c23a", 160, 0.1, 0.2);
  lobes(88, 84, 3, 10, 2);
}
