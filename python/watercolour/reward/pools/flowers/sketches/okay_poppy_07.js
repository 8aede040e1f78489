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
  background("#f7f2e8");
  brush.noStroke();
  pigment("#f6d6c8", 40, 0.4, 0.2);
  brush.circle(104, 88, 64);
  pigment("#6f9450", 100, 0.1, 0.4);
  dab(88, 152, 30, 56, 16, LEAF);
  pigment("#f4927a", 120, 0.3, 0.2);
  lobes(88, 88, 5, 48, 8);
  pigment("#d43428", 180, 0.3, 0.2);
  lobes(88, 88, 5, 32, 8);
  pigment("#2c1a24", 200, 0.1, 0.2);
  lobes(88, 88, 3, 6, 2);
}
