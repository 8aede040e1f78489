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
function draw() {
  translate(-96, -96);
  background("#fdfaf2");
  brush.noStroke();
  pigment("#4a5fc4", 220, 0.05, 0);
  dab(140, 92, 230, 80, 4, LEAF);
  dab(112, 144, 0, 80, 4, LEAF);
  dab(44, 128, 110, 100, 4, LEAF);
  dab(64, 52, 150, 80, 4, LEAF);
  dab(84, 104, 220, 100, 4, LEAF);
  dab(72, 136, 290, 60, 4, LEAF);
  dab(112, 132, 230, 80, 4, LEAF);
  dab(44, 92, 50, 60, 4, LEAF);
  dab(80, 104, 230, 60, 4, LEAF);
  dab(80, 72, 340, 60, 4, LEAF);
  dab(76, 124, 200, 80, 4, LEAF);
  dab(60, 140, 50, 100, 4, LEAF);
  dab(56, 132, 190, 80, 4, LEAF);
  dab(60, 132, 30, 60, 4, LEAF);
  dab(116, 108, 250, 60, 4, LEAF);
  dab(68, 132, 220, 80, 4, LEAF);
}
