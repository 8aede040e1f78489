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
  pigment("#efb31c", 220, 0.05, 0);
  dab(96, 120, 260, 60, 4, LEAF);
  dab(44, 120, 20, 80, 4, LEAF);
  dab(80, 144, 130, 60, 4, LEAF);
  dab(132, 112, 80, 100, 4, LEAF);
  dab(140, 92, 60, 60, 4, LEAF);
  dab(92, 84, 90, 60, 4, LEAF);
  dab(148, 92, 180, 60, 4, LEAF);
  dab(96, 116, 100, 100, 4, LEAF);
  dab(96, 100, 200, 80, 4, LEAF);
  dab(72, 76, 300, 80, 4, LEAF);
  dab(56, 52, 240, 100, 4, LEAF);
  dab(60, 120, 310, 80, 4, LEAF);
  dab(60, 48, 310, 80, 4, LEAF);
  dab(104, 140, 350, 100, 4, LEAF);
  dab(84, 48, 220, 100, 4, LEAF);
  dab(112, 124, 20, 80, 4, LEAF);
}
