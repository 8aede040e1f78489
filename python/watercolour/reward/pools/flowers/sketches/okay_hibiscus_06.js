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
const PETAL = [[0, 0], [0.4, -0.8], [0.9, -1], [1, -0.4], [0.8, 0], [1, 0.5], [0.8, 1], [0.4, 0.7]];
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
function draw() {
  translate(-96, -96);
  background("#f7f2e8");
  brush.noStroke();
  pigment("#cfe3dc", 40, 0.4, 0.2);
  brush.circle(120, 72, 64);
  pigment("#f7b090", 140, 0.2, 0.4);
  ring(104, 84, 6, 60, 28, 20);
  pigment("#f2906e", 180, 0.3, 0.2);
  ring(104, 84, 6, 48, 24, 30);
  pigment("#f2b632", 180, 0.1, 0.2);
  lobes(104, 84, 3, 10, 2);
}
