// A daisy close to the eye, half of it outside the sheet, painted in three golds.
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
  wash("#fbf0c4", 120, 0.4, 0.4, 0.2);
  blob(110, 110, 90, 84, 0.15);
  wash("#6f9450", 130, 0.25, 0.5, 0.4);
  blade(30, 196, 10, 90, -8, 9);
  wash("#fbe48c", 180, 0.25, 0.4, 0.4);
  for (let i = 0; i < 9; i++) petal(116, 110, i * 40 + random(-7, 7), random(86, 100), 21, 0.12);
  wash("#f5c52e", 190, 0.2, 0.5, 0.5);
  for (let i = 0; i < 9; i++) petal(116, 110, 12 + i * 40 + random(-7, 7), random(56, 74), 14, 0.14);
  wash("#d98e14", 200, 0.25, 0.6, 0.5);
  blob(116, 110, 26, 24, 0.12);
  wash("#8a4a16", 210, 0.25, 0.6, 0.4);
  blob(121, 116, 16, 13, 0.18);
}
