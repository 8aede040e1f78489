// White daisies on a blue wash. There is no noLoop() here: the renderer paints one frame anyway.
const FLOWERS = [
  { x: 222, y: 240, r: 120, n: 12 },
  { x: 410, y: 358, r: 90, n: 10 },
];

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(2);
}

function petal(x, y, angle, length, breadth) {
  const c = Math.cos(angle);
  const s = Math.sin(angle);
  const corners = [[0.18, 0], [0.55, 1], [0.9, 0.8], [1.02, 0], [0.9, -0.8], [0.55, -1]];
  brush.beginShape(0.5);
  for (const [u, v] of corners) {
    brush.vertex(x + c * u * length - s * v * breadth, y + s * u * length + c * v * breadth);
  }
  brush.endShape(true);
}

function ring(flower, dx, dy, turn, length, breadth) {
  for (let i = 0; i < flower.n; i++) {
    petal(flower.x + dx, flower.y + dy, turn + (i / flower.n) * 2 * Math.PI, length, breadth);
  }
}

function draw() {
  background("#fcfaf5");
  translate(-width / 2, -height / 2);
  brush.noStroke();

  brush.fillBleed(0.4);
  brush.fillTexture(0.6, 0.15);
  brush.fill("#80a8ca", 70);
  brush.circle(300, 290, 238);
  brush.fill("#5c87b0", 50);
  brush.circle(340, 330, 168);

  for (const flower of FLOWERS) {
    brush.fillBleed(0.2);
    brush.fillTexture(0.4, 0.4);
    brush.fill("#c9d3e1", 110);
    ring(flower, 0, 0, 0.05, flower.r, 0.17 * flower.r);
    brush.fillBleed(0.12);
    brush.fill("#fffdf6", 190);
    ring(flower, -2, -3, 0, 0.9 * flower.r, 0.13 * flower.r);

    brush.fillBleed(0.1);
    brush.fillTexture(0.8, 0.6);
    brush.fill("#e2a320", 170);
    brush.circle(flower.x, flower.y, 0.22 * flower.r);
    brush.fill("#a4641b", 160);
    brush.circle(flower.x + 3, flower.y + 4, 0.13 * flower.r);
  }
}
