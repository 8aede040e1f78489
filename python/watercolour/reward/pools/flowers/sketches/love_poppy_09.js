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
const PETAL = [[0, 0], [0.4, -1], [0.7, -0.8], [0.9, -1], [1, 0], [0.8, 0.2], [1, 0.6], [0.5, 1]];
const LEAF = [[0, 0], [0.4, 1], [1, 0], [0.4, -1]];
function dab(x, y, a, l, w, edge) {
  const c = cos(a), s = sin(a);
  brush.beginShape(0.5);
  for (const [u, v] of edge) brush.vertex(x + l * u * c - w * v * s, y + l * u * s + w * v * c);
  brush.endShape(true);
}
function fan(x, y, n, l, w, from, to) {
  for (let i = 0; i < n; i++) {
    dab(x, y, map(i, 0, n - 1, from, to), l * random(0.8, 1.1), w, PETAL);
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
function draw() {
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  pigment("#6f9450", 120, 0.1, 0.4);
  dab(84, 92, 90, 140, 4, LEAF);
  dab(84, 132, -20, 80, 8, LEAF);
  dab(84, 156, 130, 80, 8, LEAF);
  pigment("#f4927a", 140, 0.3, 0.2);
  fan(84, 116, 4, 64, 32, -150, -30);
  pigment("#d43428", 200, 0.2, 0.6);
  fan(84, 116, 4, 44, 24, -150, -30);
  pigment("#a81c22", 200, 0.2, 0.4);
  fan(84, 116, 4, 28, 16, -140, -30);
  pigment("#4a4a2a", 180, 0.1, 0.2);
  lobes(84, 112, 3, 6, 2);
}
