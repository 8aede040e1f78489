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
  lobes(108, 88, 5, 48, 12);
  pigment("#b8304a", 200, 0.3, 0.6);
  lobes(120, 116, 5, 56, 12);
  pigment("#4f7840", 200, 0.3, 0.6);
  lobes(104, 72, 4, 40, 12);
  pigment("#6b5a48", 200, 0.3, 0.6);
  lobes(112, 72, 3, 40, 12);
  pigment("#b8304a", 200, 0.3, 0.6);
  lobes(92, 100, 3, 48, 12);
  pigment("#4f7840", 200, 0.3, 0.6);
  lobes(104, 76, 5, 40, 12);
}
