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
  background("#e8e0d0");
  brush.noStroke();
  pigment("#6b5a48", 200, 0.3, 0.6);
  lobes(108, 112, 5, 48, 12);
  pigment("#c9740f", 200, 0.3, 0.6);
  lobes(76, 88, 4, 48, 12);
  pigment("#5a6152", 200, 0.3, 0.6);
  lobes(100, 116, 4, 40, 12);
  pigment("#6b5a48", 200, 0.3, 0.6);
  lobes(100, 100, 5, 40, 12);
  pigment("#c9740f", 200, 0.3, 0.6);
  lobes(72, 88, 3, 56, 12);
  pigment("#5a6152", 200, 0.3, 0.6);
  lobes(92, 96, 3, 56, 12);
}
