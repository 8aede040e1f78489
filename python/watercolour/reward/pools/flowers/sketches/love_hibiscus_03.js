// A hibiscus let go wet in wet: three pools of peach that find their own edges.
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
  wash("#fbdcc4", 110, 0.4, 0.4, 0.2);
  blob(96, 92, 84, 78, 0.15);
  wash("#8fb070", 130, 0.35, 0.5, 0.3);
  blade(56, 146, 14, 184, 8, 15);
  blade(136, 144, 184, 178, -8, 15);
  wash("#f7b090", 160, 0.35, 0.5, 0.5);
  for (let i = 0; i < 5; i++) blob(96 + 36 * cos(i * 72 - 90), 88 + 34 * sin(i * 72 - 90), 34, 30, 0.18);
  wash("#ee7d5f", 180, 0.3, 0.6, 0.5);
  for (let i = 0; i < 5; i++) petal(96, 88, -88 + i * 72, 48, 24, 0.2);
  wash("#b8304a", 200, 0.3, 0.6, 0.4);
  blob(96, 88, 18, 16, 0.3);
  wash("#f2b632", 230, 0.1, 0.2, 0.3);
  blade(96, 90, 104, 46, 6, 3);
}
