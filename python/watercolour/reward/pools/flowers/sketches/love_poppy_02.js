// Three poppies in the wind over a wash of grass.
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
  wash("#d6e4cc", 110, 0.4, 0.5, 0.2);
  blob(96, 168, 104, 36, 0.15);
  wash("#8fb070", 120, 0.3, 0.5, 0.3);
  for (let i = 0; i < 4; i++) blade(30 + i * 44, 196, 46 + i * 44, 132, 5, 3);
  wash("#4f7840", 140, 0.1, 0.5, 0.4);
  blade(60, 80, 44, 196, 10, 2);
  blade(128, 62, 112, 196, 12, 2);
  blade(158, 122, 146, 196, 6, 2);

  wash("#ef7a62", 170, 0.3, 0.4, 0.4);
  blob(60, 76, 38, 30, 0.2);
  blob(130, 56, 32, 26, 0.2);
  blob(158, 122, 20, 16, 0.2);
  wash("#d43428", 200, 0.2, 0.5, 0.5);
  blob(48, 80, 20, 21, 0.15);
  blob(76, 78, 19, 21, 0.15);
  blob(120, 58, 17, 18, 0.15);
  blob(144, 58, 16, 17, 0.15);
  wash("#86141f", 200, 0.2, 0.6, 0.4);
  blob(62, 86, 16, 10, 0.25);
  blob(132, 62, 13, 8, 0.25);
  wash("#2c1a24", 230, 0.1, 0.3, 0.3);
  blob(62, 82, 6, 5, 0.2);
  blob(132, 60, 5, 4, 0.2);
}
