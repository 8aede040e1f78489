'use strict';
/* An asynchronous setup, as p5 2 has it. */
async function setup() {
  await createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(2.5);
  angleMode(DEGREES);
  noLoop();
}

const draw = () => {
  push();
  translate(-width / 2, -height / 2);
  background("#fffaf0");
  brush.noStroke();
  let angle = 0;
  do {
    brush.fill(angle % 2 === 0 ? "#d94f9e" : "#f0a3cc", 190);
    brush.wash("#f0a3cc", 90);
    brush.polygon([
      [300, 300],
      [300 + 200 * cos(angle), 300 + 200 * sin(angle)],
      [300 + 200 * cos(angle + 40), 300 + 200 * sin(angle + 40)],
    ]);
    angle += 72;
  } while (angle < 360);
  pop();
};
