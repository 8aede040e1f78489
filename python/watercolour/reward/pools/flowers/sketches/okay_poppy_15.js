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
function flower(x, y, k) {
  pigment("#e04a36", 100, 0.2, 0.2);
  lobes(x, y, 8, 36 * k, 8 * k);
  pigment("#d43428", 200, 0.1, 0.2);
  lobes(x, y, 8, 24 * k, 8 * k);
  pigment("#4a4a2a", 240, 0.1, 0.2);
  lobes(x, y, 3, 6 * k, 2);
}
function draw() {
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  flower(144, 76, 0.6);
  flower(148, 152, 0.6);
  flower(100, 116, 0.7);
}
