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
  pigment("#5f78d8", 140, 0.3, 0.2);
  brush.circle(96, 96, 96);
  pigment("#4a5fc4", 180, 0.3, 0.2);
  brush.circle(96, 96, 64);
  pigment("#5f78d8", 220, 0.3, 0.2);
  brush.circle(96, 96, 32);
}
