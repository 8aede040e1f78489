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
  pigment("#8fb070", 80, 0.1, 0.4);
  dab(88, 84, 90, 140, 4, LEAF);
  dab(88, 148, 130, 72, 8, LEAF);
  pigment("#f8d95e", 140, 0.2, 0.2);
  lobes(88, 84, 7, 60, 12);
  pigment("#f5c52e", 200, 0.1, 0.4);
  lobes(88, 84, 7, 48, 8);
  pigment("#5c3014", 200, 0.1, 0.2);
  dab(88, 84, -60, 32, 4, LEAF);
}
