function setup() {
  createCanvas(64, 64, WEBGL);
  noLoop();
}
function draw() {
  translate(-32, -32);
  background("#f8f4ec");
  brush.noStroke();
  brush.fillBleed(0.2);
  brush.fillTexture(0.4, 0.4);
  brush.fill("#c8322e", 140);
  brush.circle(30, 26, 16);
  brush.noFill();
  brush.wash("#3f7d3a", 180);
  brush.rect(8, 46, 48, 10);
  brush.noWash();
  brush.set("marker", "#223366", 1);
  brush.line(6, 60, 58, 8);
}
