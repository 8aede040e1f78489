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
  pigment("#44382c", 200, 0.3, 0.6);
  lobes(72, 116, 3, 48, 12);
  pigment("#4a5fc4", 200, 0.3, 0.6);
  lobes(88, 80, 4, 40, 12);
  pigment("#6f9450", 200, 0.3, 0.6);
  lobes(120, 120, 3, 40, 12);
  pigment("#44382c", 200, 0.3, 0.6);
  lobes(108, 108, 4, 40, 12);
  pigment("#4a5fc4", 200, 0.3, 0.6);
  lobes(80, 72, 3, 40, 12);
  pigment("#6f9450", 200, 0.3, 0.6);
  lobes(120, 84, 3, 40, 12);
}
