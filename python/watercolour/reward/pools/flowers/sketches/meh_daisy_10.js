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
  pigment("#6b5a48", 240, 0, 0.2);
  dab(72, 68, 160, 60, 4, LEAF);
  dab(84, 52, 120, 60, 4, LEAF);
  dab(132, 100, 240, 60, 4, LEAF);
  dab(84, 40, 300, 60, 4, LEAF);
  dab(144, 164, 30, 60, 4, LEAF);
  dab(72, 16, 220, 60, 4, LEAF);
}
