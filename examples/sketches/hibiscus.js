// A peach hibiscus: one soft ground, leaves, five petals in three washes, and a pistil.
const CENTRE = 300;

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  noLoop();
}

// A closed shape with corners given along (u) and across (v) an axis at `angle`.
function shape(angle, length, breadth, corners) {
  const c = Math.cos(angle);
  const s = Math.sin(angle);
  brush.beginShape(0.5);
  for (const [u, v] of corners) {
    const along = u * length;
    const across = v * breadth;
    brush.vertex(CENTRE + along * c - across * s, CENTRE + along * s + across * c);
  }
  brush.endShape(true);
}

const PETAL = [
  [0.04, 0], [0.26, -0.5], [0.6, -0.9], [0.88, -0.72], [1, -0.15],
  [0.96, 0.3], [0.8, 0.8], [0.48, 0.82], [0.2, 0.42],
];
const LEAF = [[0.7, 0], [0.95, 0.55], [1.3, 0.5], [1.6, 0], [1.3, -0.5], [0.95, -0.55]];

function whorl(turn, length, breadth) {
  for (let i = 0; i < 5; i++) {
    shape(turn - Math.PI / 2 + (i * 2 * Math.PI) / 5, length, breadth, PETAL);
  }
}

function draw() {
  background("#faf6ee");
  translate(-width / 2, -height / 2);
  brush.noStroke();

  brush.fillBleed(0.35);
  brush.fillTexture(0.5, 0.2);
  brush.fill("#f6d8c2", 45);
  brush.circle(CENTRE, CENTRE, 205);

  brush.fillBleed(0.2);
  brush.fillTexture(0.6, 0.4);
  brush.fill("#5d7e50", 115);
  for (const angle of [0.75, 1.6, 2.4]) shape(angle, 165, 85, LEAF);

  brush.fillBleed(0.25);
  brush.fillTexture(0.55, 0.35);
  brush.fill("#f6ab8c", 95);
  whorl(0, 192, 104);
  brush.fillBleed(0.15);
  brush.fill("#ee8068", 120);
  whorl(0.05, 142, 70);
  brush.fillBleed(0.1);
  brush.fillTexture(0.4, 0.5);
  brush.fill("#c8384a", 150);
  whorl(-0.04, 80, 34);

  brush.fill("#7c1a31", 180);
  brush.circle(CENTRE, CENTRE, 23);
  brush.fillBleed(0.08);
  brush.fill("#f1bf4c", 190);
  for (let i = 0; i < 6; i++) brush.circle(317 + i * 13, 285 - i * 17, 8);
}
