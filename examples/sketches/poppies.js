// Three red poppies on thin stems above a pale meadow.
function setup() {
  createCanvas(512, 512, WEBGL);
  brush.scaleBrushes(2.5);
  noLoop();
}

function blob(x, y, rx, ry, corners, wobble, phase) {
  brush.beginShape(0.4);
  for (let i = 0; i < corners; i++) {
    const angle = (i / corners) * 2 * Math.PI;
    const k = 1 + wobble * Math.sin(3 * angle + phase);
    brush.vertex(x + k * rx * Math.cos(angle), y + k * ry * Math.sin(angle));
  }
  brush.endShape(true);
}

function stem(x0, y0, x1, y1, breadth) {
  const bend = (x0 + x1) / 2 + 13;
  const half = (y0 + y1) / 2;
  brush.beginShape(0.3);
  for (const [x, y] of [[x0, y0], [bend, half], [x1, y1]]) brush.vertex(x - breadth, y);
  for (const [x, y] of [[x1, y1], [bend, half], [x0, y0]]) brush.vertex(x + breadth, y);
  brush.endShape(true);
}

function poppy(x, y, r, phase) {
  brush.fillBleed(0.3);
  brush.fillTexture(0.5, 0.3);
  brush.fill("#e7624e", 80);
  blob(x, y, r, 0.85 * r, 11, 0.09, phase);

  brush.fillBleed(0.18);
  brush.fill("#d73a2d", 120);
  const petals = [[-0.4, -0.1, 0.56, 0.6], [0.42, -0.05, 0.55, 0.58], [0, -0.4, 0.6, 0.46], [0.04, 0.35, 0.6, 0.42]];
  petals.forEach(([dx, dy, rx, ry], i) => {
    blob(x + dx * r, y + dy * r, rx * r, ry * r, 9, 0.09, phase + i + 1);
  });

  brush.fillBleed(0.1);
  brush.fillTexture(0.7, 0.5);
  brush.fill("#9f1921", 150);
  blob(x - 0.2 * r, y, 0.28 * r, 0.3 * r, 8, 0.05, phase);
  blob(x + 0.22 * r, y + 4, 0.28 * r, 0.28 * r, 8, 0.05, phase + 2);

  brush.fillBleed(0.06);
  brush.fill("#24171d", 200);
  brush.circle(x, y, 0.16 * r);
  brush.fill("#3b4b2d", 180);
  brush.circle(x, y - 2, 0.09 * r);
}

function draw() {
  background("#fbf7ee");
  translate(-width / 2, -height / 2);
  brush.noStroke();

  brush.fillBleed(0.4);
  brush.fillTexture(0.6, 0.1);
  brush.fill("#cee0d2", 45);
  blob(256, 400, 238, 110, 12, 0.06, 0.4);

  brush.fillBleed(0.1);
  brush.fillTexture(0.4, 0.4);
  brush.fill("#57743f", 140);
  stem(150, 505, 150, 228, 5);
  stem(270, 505, 285, 170, 5);
  stem(380, 505, 385, 280, 5);

  poppy(150, 205, 92, 0.2);
  poppy(290, 140, 104, 1.4);
  poppy(388, 262, 74, 2.9);
}
