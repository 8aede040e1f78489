// A single iris, close: it fills the sheet and bleeds into the paper.
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

// A bent blade from (x0, y0) to (x1, y1): a stem when it is thin, a leaf when it is broad.
function blade(x0, y0, x1, y1, bend, t) {
  const n = 5, a = atan2(y1 - y0, x1 - x0), edge = [];
  for (let side = -1; side <= 1; side += 2) {
    for (let i = 0; i <= n; i++) {
      const k = side < 0 ? i / n : 1 - i / n;
      const off = bend * sin(180 * k) + side * t * (0.25 + 0.75 * sin(180 * k));
      edge.push([lerp(x0, x1, k) - off * sin(a), lerp(y0, y1, k) + off * cos(a)]);
    }
  }
  brush.beginShape(0.4);
  for (const [x, y] of edge) brush.vertex(x, y);
  brush.endShape(true);
}

function draw() {
  translate(-96, -96);
  background("#fdfaf2");
  brush.noStroke();
  wash("#e6dcf0", 110, 0.4, 0.4, 0.2);
  blob(96, 96, 88, 84, 0.15);
  wash("#a9b8ec", 160, 0.35, 0.5, 0.5);
  petal(96, 100, -90, 98, 46, 0.12);
  petal(94, 104, 155, 84, 38, 0.12);
  petal(98, 104, 25, 84, 38, 0.12);
  wash("#5f78d8", 190, 0.25, 0.6, 0.5);
  petal(96, 98, -90, 70, 28, 0.15);
  petal(94, 106, 150, 62, 26, 0.15);
  petal(98, 106, 30, 62, 26, 0.15);
  petal(96, 108, 90, 82, 40, 0.12);
  wash("#33409c", 190, 0.3, 0.6, 0.4);
  petal(96, 110, 90, 58, 22, 0.2);
  petal(94, 108, 152, 36, 13, 0.2);
  petal(98, 108, 28, 36, 13, 0.2);
  wash("#f2c23a", 230, 0.15, 0.3, 0.3);
  blade(96, 104, 97, 142, 2, 5);
}
