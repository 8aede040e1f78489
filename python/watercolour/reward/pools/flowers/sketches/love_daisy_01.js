// A yellow daisy leaning out of the light, with a deep ochre heart.
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
  wash("#cfe4ee", 100, 0.4, 0.4, 0.2);
  blob(130, 60, 60, 54, 0.2);
  wash("#fbf0c4", 100, 0.4, 0.4, 0.2);
  blob(80, 90, 66, 60, 0.2);
  wash("#6f9450", 140, 0.15, 0.5, 0.4);
  blade(90, 96, 116, 198, -10, 3);
  blade(108, 168, 164, 132, -8, 10);
  blade(106, 176, 62, 150, 8, 8);
  wash("#f8d95e", 170, 0.2, 0.4, 0.4);
  for (let i = 0; i < 10; i++) petal(88, 88, i * 36 + random(-6, 6), random(58, 70), 12, 0.12);
  wash("#efb31c", 190, 0.15, 0.5, 0.5);
  for (let i = 0; i < 10; i++) petal(88, 88, 14 + i * 36 + random(-6, 6), random(38, 50), 8, 0.12);
  wash("#c9740f", 220, 0.2, 0.6, 0.5);
  blob(88, 88, 15, 14, 0.12);
  wash("#5c3014", 200, 0.2, 0.6, 0.4);
  blob(91, 92, 9, 7, 0.2);
}
