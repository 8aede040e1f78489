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
const PETAL = [[0, 0], [0.5, -0.6], [0.8, -1], [1, 0], [0.8, 1], [0.5, 0.6]];
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
  pigment("#cfe4ee", 60, 0.4, 0.2);
  brush.circle(84, 104, 88);
  pigment("#8fb070", 80, 0.1, 0.4);
  dab(88, 88, 90, 140, 4, LEAF);
  dab(88, 128, -20, 56, 12, LEAF);
  dab(88, 152, 150, 56, 8, LEAF);
  pigment("#f8d95e", 140, 0.2, 0.4);
  fan(88, 112, 5, 60, 16, -140, -30);
  pigment("#f5c52e", 120, 0.3, 0.2);
  fan(88, 112, 5, 40, 12, -150, -30);
  pigment("#5c3014", 160, 0.1, 0.2);
  lobes(88, 108, 3, 10, 2);
}
