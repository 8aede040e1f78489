// Old style: a constructor function, and methods on its own prototype.
function Leaf(x, y, angle) {
  this.x = x;
  this.y = y;
  this.angle = angle;
  this.scale = 1;
}
Leaf.prototype.paint = function () {
  brush.beginShape(0.6);
  for (let k = 0; k < 6; k++) {
    const a = this.angle + k;
    brush.vertex(this.x + 30 * Math.cos(a) * this.scale, this.y + 60 * Math.sin(a));
  }
  brush.endShape(true);
};

window_box = 12;

function setup() {
  createCanvas(256, 256, WEBGL);
  noLoop();
}

function draw() {
  background(255, 252, 244);
  brush.noStroke();
  brush.fill("#8a9a6a", 170);
  for (let i = 0; i < window_box; i += 3) new Leaf(i * 10 - 60, i, i / 5).paint();
}
