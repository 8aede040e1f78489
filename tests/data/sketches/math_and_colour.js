const { sin, cos, PI, SQRT2: root } = Math;
const mix = (a, b, t) => lerpColor(color(a), color(b), t);
const toHex = (n) => Math.round(n).toString(16).padStart(2, "0");
const shade = (hex, k) => {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) * k);
  return "#" + [r, g, b].map(toHex).join("");
};
const hues = { pale: "#fbe48c", body: "#f5c52e", deep: "#d98e14" };
let seeds = [];

function setup() {
  createCanvas(600, 600, WEBGL);
  randomSeed(7);
  noiseSeed(7);
  noLoop();
  seeds = Array.from({ length: 14 }, (_, i) => (i / 7) * PI);
}

function draw() {
  background(`rgb(${250}, ${247}, ${238})`);
  brush.noStroke();
  for (const name of Object.keys(hues)) {
    brush.fill(hues[name], name === "deep" ? 220 : 180);
    brush.fillBleed(0.2);
    seeds.forEach((a, i) => {
      const far = 106 * root + 30 * noise(i, a);
      brush.beginShape(0.4);
      for (let k = 0; k <= 8; k++) {
        const t = k / 8;
        const wide = 22 * sin(t * PI);
        const side = k % 2 ? 1 : -1;
        brush.vertex(cos(a) * far * t - sin(a) * wide * side, sin(a) * far * t + cos(a) * wide);
      }
      brush.endShape(true);
    });
  }
  brush.fill(shade(hues.deep, 0.6), 230);
  brush.circle(0, 0, map(noise(3), 0, 1, 30, 50));
  brush.fill(mix("#8a4a16", "#5c3014", 0.5).toString("#rrggbb"), 200);
  brush.circle(0, 0, constrain(random(10, 30), 12, 25));
}
