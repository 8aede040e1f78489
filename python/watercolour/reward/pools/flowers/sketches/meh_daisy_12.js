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
function draw() {
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  pigment("#f5c52e", 140, 0.3, 0.2);
  brush.circle(96, 96, 96);
  pigment("#efb31c", 180, 0.3, 0.2);
  brush.circle(96, 96, 64);
  pigment("#f5c52e", 220, 0.3, 0.2);
  brush.circle(96, 96, 32);
}
