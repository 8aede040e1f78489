// Goes inside p5.brush, in place of the loop of its watercolour fill (FillPoly.fill, MIT licence,
// Alejandro Campos Uribe). The same random numbers in the same order and the same arithmetic, so
// the same picture byte for byte; but polygons are flat arrays in buffers that are used again,
// where the original makes two objects a vertex some eighty times a shape.
//
// Names of p5.brush's minified scope: d the random stream (Mulberry32, whose state patch.py opens), w(a, b) a number between, T map,
// D degrees to table index, F and L the tables of cosine and sine, mn and dn the pools of
// gaussians, Jr the cap on vertices, pt the state, bt the compositor.
// Mulberry32's step, and what makes 32 bits a number below 1 (Tommy Ettinger, public domain).
const WC_STEP = 1831565813;
const WC_UNIT = 2.3283064365386963e-10;
const wcPoly = () => ({ x: new Float64Array(0), y: 0, m: 0, d: 0, n: 0, room: 0 });
const wcFit = (p, n) => {
  if (!(n >= 0)) throw new RangeError("Invalid array length");
  if (p.room < n) {
    p.room = n + (n >> 1) + 64;
    p.x = new Float64Array(p.room);
    p.y = new Float64Array(p.room);
    p.m = new Float64Array(p.room);
    p.d = new Uint8Array(p.room);
  }
  p.n = n;
  return p;
};
const [wcStart, wcSparse, wcEven, wcOdd, wcOuter, wcInner, wcCut] = Array.from({ length: 7 }, wcPoly);
const wcPols = Array.from({ length: 4 }, () => ({ cut: wcPoly(), out: wcPoly() }));

const wcFrom = (from, into) => {
  const n = from.v.length;
  wcFit(into, n);
  for (let i = 0; i < n; i++) {
    into.x[i] = from.v[i].x;
    into.y[i] = from.v[i].y;
    into.m[i] = from.m[i];
    into.d[i] = from.dir[i] ? 1 : 0;
  }
  return into;
};

const wcFlip = (from, into) => {
  const n = from.n;
  if (from !== into) {
    wcFit(into, n);
    into.x.set(from.x.subarray(0, n));
    into.y.set(from.y.subarray(0, n));
    into.m.set(from.m.subarray(0, n));
  }
  for (let i = 0; i < n; i++) into.d[i] = from.d[i] ^ 1;
  return into;
};

// Cuts a share of the vertices out and bridges the gap.
const wcTrim = (p, share, into) => {
  const n = p.n;
  if (share >= 1 || share < 0 || n <= 8) return p;
  const { x, y, m: mods, d: dirs } = p;
  const cut = ~~((1 - share) * n);
  const from = ~~(n / 2 - cut / 2);
  const to = from + cut;
  const a = (from - 1 + n) % n;
  const b = to % n;
  const ax = x[a];
  const ay = y[a];
  const ex = x[b] - ax;
  const ey = y[b] - ay;
  const edge = Math.hypot(ex, ey);
  const i = from >= 2 ? ~~w(0, from - 1) : to < n - 1 ? to : 0;
  const j = (i + 1) % n;
  const spacing = Math.max(1, Math.hypot(x[j] - x[i], y[j] - y[i]));
  const inserted = Math.max(2, Math.ceil((edge / spacing) * 0.05));
  wcFit(into, n - cut + inserted);
  const { x: X, y: Y, m: M, d: O } = into;
  X.set(x.subarray(0, from));
  Y.set(y.subarray(0, from));
  M.set(mods.subarray(0, from));
  O.set(dirs.subarray(0, from));
  const jitter = 0.06 * edge;
  const dir = dirs[from % n];
  let k = from;
  for (let t = 0; t < inserted; t++, k++) {
    const along = (t + 1) / (inserted + 1);
    X[k] = ax + ex * along + w(-jitter, jitter);
    Y[k] = ay + ey * along + w(-jitter, jitter);
    M[k] = w(0.3, 0.5);
    O[k] = dir;
  }
  X.set(x.subarray(to, n), k);
  Y.set(y.subarray(to, n), k);
  M.set(mods.subarray(to, n), k);
  O.set(dirs.subarray(to, n), k);
  return into;
};

// Puts a displaced vertex between every two. Above the cap every step-th of the result is kept;
// an even step keeps none of the new ones, but their random numbers are drawn all the same.
// Growth 999 and 997 are the layers' own: nothing reads their modifiers afterwards.
const wcGrow = (p, growth, cut, into) => {
  const q = wcTrim(p, growth, cut);
  const n = q.n;
  const { x, y, m: mods, d: dirs } = q;
  if (mn[0].length === 0) dn();
  const first = mn[0];
  const firsts = first.length;
  const second = mn[1];
  const seconds = second.length;
  const bleed = pt.fill.direction === "out" ? -90 : 90;
  const own = growth < 997;
  let mod = growth === 999 ? w(0.6, 0.8) : pt.fill.bleed_strength;
  const step = Jr && 2 * n > Jr ? Math.ceil((2 * n) / Jr) : 1;
  if (step >= 2 && !(step & 1)) {
    let drawn = 0;
    for (let i = 0; i < n; i++) {
      if (own) mod = mods[i];
      if (mod >= 0.05) drawn += 4;
    }
    d.wcSet((d.wcGet() + drawn * WC_STEP) | 0);
    return q;
  }
  wcFit(into, Math.ceil((2 * n) / step));
  const { x: X, y: Y, m: M, d: O } = into;
  let e = d.wcGet();
  let t = 0;
  let skip = 0; // places until the next one that is kept
  let k = 0;
  for (let i = 0; i < n; i++) {
    const next = i + 1 < n ? i + 1 : 0;
    const cx = x[i];
    const cy = y[i];
    const dir = dirs[i];
    let newMod = mods[i];
    let nx;
    let ny;
    if (own) mod = newMod;
    if (skip === 0) {
      X[k] = cx;
      Y[k] = cy;
      M[k] = newMod;
      O[k] = dir;
      k++;
      skip = step;
    }
    skip--;
    if (skip !== 0) {
      // The new one is not kept either: only its numbers are drawn.
      if (!(mod < 0.05)) e = (e + 4 * WC_STEP) | 0;
      skip--;
      continue;
    }
    if (mod < 0.05) {
      nx = (cx + x[next]) / 2;
      ny = (cy + y[next]) / 2;
    } else {
      // Four numbers of d: in a young realm four calls would take twice as long.
      e = (e + WC_STEP) | 0;
      t = Math.imul(e ^ (e >>> 15), 1 | e);
      t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
      const turn = WC_UNIT * ((t ^ (t >>> 14)) >>> 0);
      e = (e + WC_STEP) | 0;
      t = Math.imul(e ^ (e >>> 15), 1 | e);
      t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
      const which = WC_UNIT * ((t ^ (t >>> 14)) >>> 0);
      e = (e + WC_STEP) | 0;
      t = Math.imul(e ^ (e >>> 15), 1 | e);
      t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
      const reach = WC_UNIT * ((t ^ (t >>> 14)) >>> 0);
      e = (e + WC_STEP) | 0;
      t = Math.imul(e ^ (e >>> 15), 1 | e);
      t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
      const other = WC_UNIT * ((t ^ (t >>> 14)) >>> 0);
      const index = D((dir ? bleed : -bleed) + 5 * (-1 + turn * 2));
      const c = F[index];
      const s = L[index];
      const sx = x[next] - cx;
      const sy = y[next] - cy;
      const far = first[~~(which * firsts)] * (0.65 + reach * (1.35 - 0.65)) * mod;
      newMod += second[~~(other * seconds)];
      nx = cx + 0.5 * sx + (c * sx + s * sy) * far;
      ny = cy + 0.5 * sy + (c * sy - s * sx) * far;
    }
    X[k] = nx;
    Y[k] = ny;
    M[k] = newMod;
    O[k] = dir;
    k++;
    skip = step - 1;
  }
  d.wcSet(e);
  return into;
};

const wcLayer = (p, index, size, alpha, matrix) => {
  const ctx = bt.ctx;
  const { x, y, n } = p;
  const { a, b, c, d: e, e: f, f: g } = matrix;
  ctx.lineWidth = T(index, 0, 24, size / 25, size / 30, true) * pt.fill.border_strength;
  ctx.fillStyle = "rgb(255 0 0 / " + alpha + "%)";
  ctx.beginPath();
  let minX = Infinity;
  let minY = Infinity;
  let maxX = -Infinity;
  let maxY = -Infinity;
  for (let i = 0; i < n; i++) {
    const px = x[i];
    const py = y[i];
    const tx = a * px + c * py + f;
    const ty = b * px + e * py + g;
    if (tx < minX) minX = tx;
    if (tx > maxX) maxX = tx;
    if (ty < minY) minY = ty;
    if (ty > maxY) maxY = ty;
    if (i === 0) ctx.moveTo(px, py);
    else ctx.lineTo(px, py);
  }
  ctx.closePath();
  const pad = ctx.lineWidth > 0 ? 1 + (ctx.lineWidth * Math.max(Math.hypot(a, c), Math.hypot(b, e))) / 2 : 1;
  bt.markDirtyRect(bt.mask, { minX: minX - pad, minY: minY - pad, maxX: maxX + pad, maxY: maxY + pad });
  ctx.fill();
  if (!wcFaint(matrix)) ctx.stroke();
};

const wcPaint = (poly, grown, scattered, darker, size, alpha, texture, matrix, color, intensity) => {
  let pol = wcFrom(grown, wcStart);
  const sparse = wcFrom(scattered, wcSparse);
  const pols = [];
  for (let r = 0; r < 20; r++) {
    if (r % 4 === 0) pol = wcGrow(pol, 1, wcCut, pol === wcEven ? wcOdd : wcEven);
    if (r % 2 === 0) {
      pols[0] = wcGrow(pol, 1 - 0.0125 * r, wcPols[0].cut, wcPols[0].out);
      pols[1] = wcGrow(pol, 0.7 - 0.0125 * r, wcPols[1].cut, wcPols[1].out);
      pols[2] = wcGrow(pol, 0.4 - 0.0125 * r, wcPols[2].cut, wcPols[2].out);
    }
    for (let k = 0; k < 3; k++) {
      const outer = wcGrow(pols[k], 999, wcCut, wcOuter);
      wcLayer(wcGrow(outer, 997, wcCut, wcInner), r, size, alpha, matrix);
    }
    if (pt.fill.scatter) {
      const outer = wcFlip(wcGrow(sparse, 999, wcCut, wcOuter), wcOuter);
      wcLayer(wcGrow(outer, 997, wcCut, wcInner), r, size, alpha * texture, matrix);
    }
    if (r % 2 === 0) {
      const dark = wcGrow(pol, darker, wcPols[3].cut, wcPols[3].out);
      wcLayer(wcGrow(dark, 999, wcCut, wcOuter), r, size, 2 * alpha, matrix);
    }
    if (r % 8 === 0 || r === 19) {
      if (texture !== 0) poly.erase(3 * texture, intensity);
      wcFilling = true;
      bt.blend(color, true);
      wcFilling = false;
    }
  }
};
