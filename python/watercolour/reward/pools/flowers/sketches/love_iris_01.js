// A bearded iris: three standards, three hanging falls, yellow beards.
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
  background("#faf5ea");
  brush.noStroke();
  wash("#d3dcf4", 90, 0.4, 0.4, 0.2);
  blob(100, 70, 70, 58, 0.2);
  wash("#6f9450", 140, 0.15, 0.5, 0.4);
  blade(96, 104, 100, 198, 4, 4);
  blade(112, 198, 150, 92, 12, 7);
  wash("#4f7840", 130, 0.15, 0.5, 0.4);
  blade(84, 198, 46, 110, -12, 7);

  wash("#8ea2e6", 160, 0.25, 0.4, 0.4);
  petal(96, 92, -90, 76, 28, 0.1);
  petal(94, 92, -128, 62, 24, 0.1);
  petal(98, 92, -52, 62, 24, 0.1);
  wash("#5f78d8", 190, 0.2, 0.5, 0.5);
  petal(96, 92, -90, 52, 17, 0.15);
  petal(92, 92, 146, 62, 24, 0.12);
  petal(100, 92, 34, 62, 24, 0.12);
  petal(96, 94, 90, 60, 28, 0.1);
  wash("#33409c", 190, 0.2, 0.6, 0.5);
  petal(92, 92, 146, 42, 13, 0.2);
  petal(100, 92, 34, 42, 13, 0.2);
  petal(96, 96, 90, 42, 15, 0.2);
  wash("#f2c23a", 220, 0.1, 0.2, 0.3);
  blade(94, 94, 74, 106, 2, 3);
  blade(98, 94, 118, 106, -2, 3);
  blade(96, 96, 96, 118, 1, 4);
}
