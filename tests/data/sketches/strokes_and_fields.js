function setup() {
  createCanvas(500, 500, WEBGL);
  brush.load();
  noLoop();
  frameRate(1);
}

function draw() {
  background("#f7f2e7");
  brush.field("curved");
  brush.set("HB", "#47357a", 1.2);
  for (let x = -200; x <= 200; x += 25) {
    brush.flowLine(x, 200, 260 + random(-40, 40), 90);
  }
  brush.noField();
}

function sprig(x, y, n = 5, ...rest) {
  brush.beginStroke("curve", x, y);
  for (let i = 0; i < n; ++i) brush.move(80 + i * 4, 20, 1 - i / (n + 1));
  brush.endStroke(90, 0.2);
  brush.hatch(6, 45, { rand: 0.1, continuous: true });
  return rest;
}
