// Two hibiscus on one branch, the nearer one running out of the sheet.
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
  wash("#cfe3dc", 90, 0.4, 0.4, 0.2);
  blob(120, 140, 80, 60, 0.25);
  wash("#6f9450", 140, 0.2, 0.5, 0.4);
  blade(190, 190, 60, 96, -14, 3);
  blade(148, 164, 190, 116, 10, 13);
  wash("#8fb070", 130, 0.25, 0.4, 0.4);
  blade(132, 160, 104, 192, -8, 12);

  wash("#f7b090", 150, 0.25, 0.4, 0.4);
  for (let i = 0; i < 4; i++) petal(148, 58, -160 + i * 80, 42, 26, 0.12);
  wash("#d4483f", 170, 0.2, 0.5, 0.4);
  for (let i = 0; i < 4; i++) petal(148, 58, -150 + i * 80, 20, 10, 0.15);

  wash("#f9c6a8", 170, 0.25, 0.4, 0.5);
  for (let i = 0; i < 5; i++) petal(62, 96, -80 + i * 72, 74, 46, 0.1);
  wash("#ee7d5f", 180, 0.2, 0.5, 0.5);
  for (let i = 0; i < 5; i++) petal(62, 96, -72 + i * 72, 50, 27, 0.12);
  wash("#b8304a", 200, 0.2, 0.6, 0.5);
  for (let i = 0; i < 5; i++) petal(62, 96, -76 + i * 72, 25, 11, 0.15);
  wash("#f2b632", 220, 0.05, 0.2, 0.3);
  blade(62, 96, 96, 68, 5, 2.5);
  blob(98, 66, 5, 5, 0.3);
}
