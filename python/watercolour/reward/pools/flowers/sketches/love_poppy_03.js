// A poppy close up, its rim crumpled, its stamens a dark wreath.
function setup() {
  createCanvas(192, 192, WEBGL);
  angleMode(DEGREES);
  brush.scaleBrushes(1);
  noLoop();
}

function wash(color, opacity, bleed, texture, border) {
  brush.fill(color, opacity);
  brush.fillBleed(bleed);
  brush.fillTexture(texture, border);
}

// An uneven pool of water and pigment.
function blob(x, y, rx, ry, rough) {
  brush.beginShape(0.6);
  for (let a = 0; a < 360; a += 30) {
    const k = random(1 - rough, 1 + rough);
    brush.vertex(x + rx * k * cos(a), y + ry * k * sin(a));
  }
  brush.endShape(true);
}

// A petal from its foot at (x, y): narrow foot, broad shoulders, an uneven rim.
function petal(x, y, a, l, w, rough) {
  const left = [], right = [];
  for (const [u, v] of [[0.05, 0.12], [0.3, 0.5], [0.6, 0.92], [0.85, 0.9], [0.98, 0.45]]) {
    left.push([u * l * random(1 - rough, 1 + rough), -v * w * random(1 - rough, 1 + rough)]);
    right.unshift([u * l * random(1 - rough, 1 + rough), v * w * random(1 - rough, 1 + rough)]);
  }
  brush.beginShape(0.5);
  for (const [u, v] of [...left, [l * random(0.92, 1), 0], ...right]) {
    brush.vertex(x + u * cos(a) - v * sin(a), y + u * sin(a) + v * cos(a));
  }
  brush.endShape(true);
}

function draw() {
  translate(-96, -96);
  background("#fdfaf2");
  brush.noStroke();
  wash("#f6d6c8", 110, 0.4, 0.4, 0.2);
  blob(98, 92, 88, 82, 0.12);
  wash("#f4927a", 180, 0.3, 0.5, 0.5);
  petal(96, 96, -90, 86, 62, 0.14);
  petal(96, 96, 90, 80, 60, 0.14);
  wash("#e04a36", 200, 0.25, 0.5, 0.5);
  petal(96, 96, 180, 80, 52, 0.14);
  petal(96, 96, 0, 82, 52, 0.14);
  wash("#a81c22", 190, 0.3, 0.6, 0.4);
  for (let i = 0; i < 4; i++) petal(96, 96, i * 90 + 8, 44, 22, 0.2);
  wash("#2c1a24", 220, 0.15, 0.4, 0.4);
  for (let i = 0; i < 7; i++) blob(96 + 20 * cos(i * 51), 96 + 20 * sin(i * 51), 4, 4, 0.3);
  wash("#8fb070", 210, 0.1, 0.3, 0.4);
  blob(96, 96, 11, 11, 0.12);
}
