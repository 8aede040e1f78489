// Two irises in the rain, one in front of the other, the far one almost dissolved.
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
  background("#f7f2e8");
  brush.noStroke();
  wash("#d3dcf4", 110, 0.4, 0.5, 0.2);
  blob(120, 80, 74, 80, 0.25);
  wash("#8fb070", 120, 0.3, 0.5, 0.3);
  blade(140, 96, 132, 198, 6, 3);
  blade(120, 198, 170, 116, 12, 6);
  wash("#a9b8ec", 160, 0.4, 0.4, 0.3);
  petal(140, 76, -90, 50, 20, 0.15);
  petal(140, 76, -140, 42, 18, 0.15);
  petal(140, 76, -40, 42, 18, 0.15);
  petal(140, 78, 110, 42, 20, 0.15);

  wash("#4f7840", 150, 0.1, 0.5, 0.4);
  blade(64, 110, 74, 198, -5, 4);
  blade(58, 198, 22, 104, -10, 7);
  wash("#8ea2e6", 170, 0.25, 0.4, 0.4);
  petal(64, 96, -90, 72, 26, 0.1);
  petal(62, 96, -135, 56, 22, 0.1);
  petal(66, 96, -45, 56, 22, 0.1);
  wash("#4a5fc4", 200, 0.2, 0.5, 0.5);
  petal(62, 98, 150, 52, 22, 0.12);
  petal(66, 98, 30, 52, 22, 0.12);
  petal(64, 100, 92, 56, 26, 0.12);
  wash("#4b2f8f", 190, 0.2, 0.6, 0.4);
  petal(64, 100, 92, 36, 14, 0.2);
  petal(64, 94, -90, 34, 12, 0.2);
  wash("#f2c23a", 220, 0.1, 0.2, 0.3);
  blade(64, 100, 66, 122, 1, 4);
}
