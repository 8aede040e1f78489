const garden = new Map([["iris", 3], ["poppy", 5]]);
const seen = new Set();
let flowers;

function setup() {
  createCanvas(600, 400, WEBGL);
  noLoop();
  flowers = [...garden].map(([kind, petals], at) => ({
    kind,
    petals,
    at: createVector(-150 + 300 * at, 20 * at),
    [`is_${kind}`]: true,
  }));
}

function* ring(n) {
  for (let i = 0; i < n; i++) yield p5.Vector.fromAngle((i * TWO_PI) / n).mult(70);
}

function draw() {
  background(252, 250, 245);
  brush.noStroke();
  const pigments = { iris: ["#4a5fc4", "#33409c"], poppy: ["#e04a36", "#a81c22"] };
  for (const { kind, petals, at } of flowers) {
    if (seen.has(kind)) continue;
    seen.add(kind);
    for (const v of ring(petals)) {
      const tip = p5.Vector.add(at, v);
      brush.fill(pigments[kind][petals > 4 ? 1 : 0], 170);
      brush.circle(tip.x, tip.y, 40 + randomGaussian(0, 3));
    }
  }
  try {
    console.log(JSON.stringify(flowers.length), flowers?.[0]?.kind ?? "none");
  } catch (error) {
    console.error(error.message);
  }
}
