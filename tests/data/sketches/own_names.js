// The sketch's own names look like p5's, and are the sketch's own.
function line(points) {
  brush.spline(points, 0.5);
}
const text = ["#e04a36", "#a81c22"];
let rect = { x: -60, y: -60, w: 120 };
const circle = (x, y, r) => brush.circle(x, y, r);

function setup() {
  createCanvas(512, 512, WEBGL);
  noLoop();
}

function draw() {
  background("#f6efe2");
  brush.set("2B", "#2c1a24", 1);
  line([[-100, 200, 1], [-20, 60, 0.8], [0, 0, 0.5]]);
  brush.noStroke();
  for (const point of [{ x: 0, y: 0, arc: 1 }, { x: 30, y: -20, arc: 2 }]) {
    const square = point.arc * 40;
    brush.fill(text[point.arc - 1], 170);
    circle(point.x + rect.x / 6, point.y, square);
  }
  const image = (name) => name.length;
  brush.fill("#f4927a", image("poppy") * 30);
  circle(rect.x, rect.y, rect.w / 4);
}
