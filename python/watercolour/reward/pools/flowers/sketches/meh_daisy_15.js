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
  pigment("#efb31c", 230, 0.4, 0.4);
  brush.circle(96, 96, 150);
  pigment("#8a4a16", 200, 0.1, 0.2);
  brush.circle(96, 96, 10);
}
