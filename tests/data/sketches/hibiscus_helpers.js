// A peach hibiscus: helper functions, loops, arrays of petals. No arc(), text() or fetch() here.
const PALETTE = ["#f9c6a8", "#f2906e", "#d4483f"];

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

function petal(cx, cy, turn, reach, wide) {
  brush.beginShape(0.5);
  for (const [u, v] of [[0, 0], [0.5, -0.8], [1, -0.1], [0.8, 0.7], [0.3, 0.5]]) {
    const x = cx + reach * u * cos(turn) - wide * v * sin(turn);
    const y = cy + reach * u * sin(turn) + wide * v * cos(turn);
    brush.vertex(x, y);
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background("#fbf7ee");
  brush.noStroke();
  for (let layer = 0; layer < PALETTE.length; layer++) {
    brush.fill(PALETTE[layer], 180 + 20 * layer);
    brush.fillBleed(0.25);
    brush.fillTexture(0.4, 0.3);
    for (let i = 0; i < 5; i++) {
      petal(300, 280, i * 72 + random(-6, 6), 220 - layer * 60, 80 - layer * 20);
    }
  }
  brush.fill("#7d1830", 220);
  brush.circle(300, 280, 18, true);
}
