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
  background("#dde6ea");
  brush.noStroke();
  pigment("#f4927a", 160, 0, 0.2);
  dab(28, 56, 130, 60, 4, LEAF);
  dab(108, 120, 120, 60, 4, LEAF);
  dab(96, 132, 270, 60, 4, LEAF);
  dab(100, 104, 120, 60, 4, LEAF);
  dab(164, 56, 280, 60, 4, LEAF);
  dab(160, 76, 30, 60, 4, LEAF);
  dab(48, 16, 270, 60, 4, LEAF);
  dab(152, 44, 210, 60, 4, LEAF);
}
