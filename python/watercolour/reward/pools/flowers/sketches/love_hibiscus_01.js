// A peach hibiscus turned to the left, its long pistil reaching out of a crimson throat.
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
  wash("#cfe3dc", 80, 0.4, 0.3, 0.2);
  blob(70, 120, 62, 48, 0.2);
  wash("#fbdcc4", 90, 0.4, 0.3, 0.2);
  blob(128, 70, 56, 50, 0.2);

  wash("#6f9450", 130, 0.15, 0.5, 0.4);
  blade(126, 150, 184, 178, 8, 13);
  wash("#4f7840", 120, 0.1, 0.5, 0.4);
  blade(74, 156, 18, 184, 8, 12);
  blade(92, 120, 98, 196, 6, 3);

  wash("#f9c6a8", 160, 0.25, 0.4, 0.4);
  for (let i = 0; i < 5; i++) petal(94, 92, -100 + i * 72, 78, 44, 0.1);
  wash("#f2906e", 170, 0.2, 0.5, 0.5);
  for (let i = 0; i < 5; i++) petal(94, 92, -94 + i * 72, 58, 30, 0.12);
  wash("#d4483f", 180, 0.2, 0.6, 0.5);
  for (let i = 0; i < 5; i++) petal(94, 92, -98 + i * 72, 30, 13, 0.15);
  wash("#7d1830", 200, 0.25, 0.4, 0.4);
  blob(94, 92, 9, 8, 0.2);

  wash("#f2b632", 210, 0.05, 0.2, 0.3);
  blade(94, 92, 142, 58, -7, 2.5);
  for (let i = 0; i < 5; i++) blob(132 + i * 4, 66 - i * 4 + random(-5, 5), 3, 3, 0.2);
}
