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
function draw() {
  translate(-96, -96);
  background("#f7f2e8");
  brush.noStroke();
  pigment("#cfe3dc", 40, 0.3, 0.2);
  brush.circle(84, 88, 76);
  pigment("#4f7840", 80, 0.1, 0.4);
  dab(92, 92, 80, 140, 4, LEAF);
  dab(92, 132, 30, 64, 8, LEAF);
  pigment("#f9c6a8", 100, 0.3, 0.2);
  fan(92, 116, 5, 76, 44, -150, -30);
  pigment("#f2906e", 180, 0.2, 0.6);
  fan(92, 116, 5, 60, 36, -150, -30);
  pigment("#f2b632", 160, 0.1, 0.2);
  dab(92, 112, -60, 32, 4, LEAF);
}
