let cnv;
var petals = 9, grow;

setup = function () {
  cnv = createCanvas(300, 300, "webgl");
  grow = (n) => (n > 0 ? [n, ...grow(n - 1)] : []);
  background(255);
  brush.noStroke();
  outer: for (const n of grow(petals)) {
    if (n === 4) continue outer;
    switch (n % 3) {
      case 0:
        brush.fill("#5c1240", 160);
        break;
      default:
        brush.fill("#97226b", 140);
    }
    brush.rect(-n * 12, -n * 12, n * 24, n * 24);
  }
};
