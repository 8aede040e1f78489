const parse = (hex) => hex.replace(/^#/, "").match(/../g).map((part) => parseInt(part, 16));
const grid = [];

function setup() {
  createCanvas(windowWidth > 600 ? 600 : 600, 600, WEBGL);
  noLoop();
  for (let i = 0; i < 4; i++) {
    grid[i] = [];
    for (let j = 0; j < 4; j++) grid[i][j] = i * 4 + j;
  }
}

function draw() {
  translate(-width / 2, -height / 2);
  background("#fdfbf4");
  brush.noStroke();
  const [r, g, b] = parse("#9b62c2");
  for (let i = 0; i < grid.length; i++) {
    for (let j = 0; j < grid[i].length; j++) {
      const k = grid[i][j] / 16;
      brush.fill(color(r * k, g * k, b), 150);
      brush.circle(90 + i * 140, 90 + j * 140, 30 + (grid[(i + 1) % 4][j] >> 1));
    }
  }
  const tones = ["#9b62c2", "#5f2f8c"];
  const pick = (list) => list[floor(random(list.length))];
  const last = tones[tones.length - 1];
  const order = tones.slice().sort((a, b) => a.localeCompare(b));
  brush.fill(random() < 0.5 ? pick(order) : last, 120);
  brush.arc(300, 300, 50, 0, PI);
}
