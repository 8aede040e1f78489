// A poppy bowl from the side on a bent stem, with a nodding bud.
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
  wash("#d6e4cc", 90, 0.4, 0.4, 0.2);
  blob(90, 150, 84, 40, 0.2);
  wash("#6f9450", 140, 0.15, 0.5, 0.4);
  blade(92, 96, 78, 198, 10, 2.5);
  blade(84, 160, 150, 112, -22, 2);
  blade(80, 190, 30, 140, 8, 8);
  wash("#4f7840", 160, 0.15, 0.5, 0.4);
  blob(152, 120, 9, 13, 0.15);

  wash("#f4927a", 170, 0.25, 0.4, 0.4);
  petal(92, 100, -130, 70, 40, 0.1);
  petal(92, 100, -50, 70, 40, 0.1);
  petal(92, 100, -90, 72, 42, 0.1);
  wash("#e04a36", 200, 0.2, 0.5, 0.5);
  petal(92, 102, -112, 58, 34, 0.12);
  petal(92, 102, -66, 58, 34, 0.12);
  wash("#a81c22", 190, 0.25, 0.6, 0.5);
  petal(92, 102, -90, 34, 24, 0.2);
  wash("#2c1a24", 200, 0.2, 0.4, 0.4);
  blob(92, 92, 11, 7, 0.2);
}
