class Petal {
  #turn = 0;
  static count = 0;
  constructor(reach, turn, pigment = "#5f78d8") {
    this.reach = reach;
    this.#turn = turn;
    this.pigment = pigment;
    Petal.count += 1;
  }
  get tip() {
    return { x: this.reach * Math.cos(this.#turn), y: this.reach * Math.sin(this.#turn) };
  }
  set size(value) {
    this.reach = value;
  }
  get size() {
    return this.reach;
  }
  paint() {
    const { x, y } = this.tip;
    brush.fill(this.pigment, 190);
    brush.circle(x, y, this.size / 4);
    return this;
  }
}

class Sepal extends Petal {
  paint() {
    super.paint();
    brush.fill("#8a9a6a", 160);
    brush.circle(0, 60, 12);
  }
}

const flower = {
  petals: [],
  get first() {
    return this.petals[0];
  },
  grow(n) {
    for (let i = 0; i < n; i++) this.petals.push(new Petal(120, (i / n) * TWO_PI));
  },
};

function setup() {
  createCanvas(400, 400, WEBGL);
  pixelDensity(1);
  noLoop();
}

function draw() {
  background(250, 248, 240);
  brush.noStroke();
  flower.grow(6);
  flower.petals.forEach((petal) => petal.paint());
  new Sepal(80, HALF_PI).paint();
  flower.first.size = 140;
}
