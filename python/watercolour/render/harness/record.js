// What was painted, in order: outlines in pixels of the canvas and the pigment that filled them.
// Only reads: with and without it a painting is the same byte for byte. The format is described in
// docs/reference/replay.md.
(() => {
  "use strict";
  const own = window.__watercolour;
  const { hooks } = own;
  const { apply } = Reflect;
  const LIMITS = { within: 0.25, chunk: 4096, name: 64 };
  const { slice, padStart, toWellFormed } = String.prototype;
  const { toString } = Number.prototype;
  const { min, max, round, hypot, exp } = Math;
  const { isFinite } = Number;

  // Outlines ---------------------------------------------------------------------------------

  const rounded = (value) => round(value * 100) / 100;

  // Indices of the points to keep so that none of the others is further than `within` pixels from
  // the line that replaces it (Douglas and Peucker).
  const keep = (points, from, to, kept) => {
    const open = [from, to];
    while (open.length) {
      const last = open[open.length - 1];
      const start = open[open.length - 2];
      open.length -= 2;
      const [ax, ay] = [points[2 * start], points[2 * start + 1]];
      const [dx, dy] = [points[2 * last] - ax, points[2 * last + 1] - ay];
      const length = hypot(dx, dy);
      let far = -1;
      let most = LIMITS.within - 0.01; // what rounding takes
      for (let i = start + 1; i < last; i++) {
        const [px, py] = [points[2 * i] - ax, points[2 * i + 1] - ay];
        // Beyond the ends the distance to the line is not the distance to the segment.
        const along = length ? max(0, min(1, (px * dx + py * dy) / (length * length))) : 0;
        const away = hypot(px - along * dx, py - along * dy);
        if (away > most) [far, most] = [i, away];
      }
      if (far < 0) continue;
      kept[far] = 1;
      const n = open.length;
      open[n] = start;
      open[n + 1] = open[n + 2] = far;
      open[n + 3] = last;
    }
  };
  const simplified = (points, closed) => {
    const n = points.length / 2;
    const kept = new Uint8Array(n);
    kept[0] = kept[n - 1] = 1;
    let middle = n - 1;
    if (closed) {
      // An outline ends where it starts: it is halved at the point that is furthest from there.
      let most = -1;
      for (let i = 1; i < n; i++) {
        const away = hypot(points[2 * i] - points[0], points[2 * i + 1] - points[1]);
        if (away > most) [middle, most] = [i, away];
      }
      kept[middle] = 1;
    }
    keep(points, 0, middle, kept);
    if (middle < n - 1) keep(points, middle, n - 1, kept);
    const out = [];
    for (let i = 0; i < n; i++) {
      if (!kept[i]) continue;
      out[out.length] = points[2 * i];
      out[out.length] = points[2 * i + 1];
    }
    return out;
  };
  const written = (points) => {
    for (let i = 0; i < points.length; i++) points[i] = rounded(points[i]);
    return points;
  };

  // Pigment ----------------------------------------------------------------------------------

  const hex = (part) => {
    const level = max(0, min(255, round(255 * part))) || 0;
    return apply(padStart, apply(toString, level, [16]), [2, "0"]);
  };
  const colourOf = (color) => {
    const parts = color?._array ?? [];
    return `#${hex(parts[0])}${hex(parts[1])}${hex(parts[2])}`;
  };
  const share = (value) => {
    const found = typeof value === "number" ? value : NaN;
    return found >= 0 ? round(1000 * min(1, found)) / 1000 : 0;
  };
  const size = (value) => (typeof value === "number" && isFinite(value) ? rounded(max(0, value)) : 0);

  own.record = (most) => {
    const replay = { version: 1, shapes: [], truncated: false, elsewhere: 0 };
    let points = 0;
    let call = "";
    let group = null; // {kind, shape}: hatching and masses are one shape of many strokes

    const add = (shape) => {
      const { shapes } = replay;
      let more = 0;
      for (const path of shape.paths) more += path.length / 2;
      // The list is the beginning of the painting: nothing follows what no longer fitted.
      replay.truncated ||= shapes.length >= most.shapes || points + more > most.points;
      if (replay.truncated) return null;
      points += more;
      shapes[shapes.length] = shape;
      return shape;
    };
    const outline = (vertices, m, width, height) => {
      const found = [];
      for (let i = 0; i < vertices.length; i++) {
        const { x, y } = vertices[i];
        const px = m.a * x + m.c * y + m.x + width / 2;
        const py = m.b * x + m.d * y + m.y + height / 2;
        if (!isFinite(px) || !isFinite(py)) continue;
        found[found.length] = px;
        found[found.length] = py;
      }
      return found.length < 6 ? null : written(simplified(found, true));
    };
    const isMain = (renderer, framebuffer) => renderer === window.p5.instance && !framebuffer;
    const area = (kind, vertices, pigment, m, width, height, ...target) => {
      if (!isMain(...target)) {
        replay.elsewhere++;
        return;
      }
      const path = outline(vertices, m, width, height);
      if (path) {
        const opacity = share(pigment.opacity / 255);
        add({ kind, call, paths: [path], colour: colourOf(pigment.color), opacity });
      }
    };

    const { fill, wash, stroke } = hooks;
    hooks.fill = (vertices, pigment, ...rest) => {
      fill();
      const before = replay.shapes.length;
      area("fill", vertices, pigment, ...rest);
      if (replay.shapes.length === before) return;
      const shape = replay.shapes[before];
      shape.bleed = share(pigment.bleed_strength);
      shape.direction = pigment.direction === "out" ? "out" : "in";
      shape.texture = share(pigment.texture_strength);
      shape.border = share(pigment.border_strength);
    };
    hooks.wash = (vertices, pigment, ...rest) => {
      wash();
      area("wash", vertices, pigment, ...rest);
    };

    // A stroke gives its path step by step: where the brush is, in the canvas' corner coordinates.
    hooks.stroke = (count, tip, pigment, m, cx, cy, ...target) => {
      stroke(count);
      if (!isMain(...target)) {
        replay.elsewhere++;
        return null;
      }
      if (replay.truncated) return null;
      // The steps are a fraction of a pixel: what is behind is thinned out on the way, once.
      const done = [];
      let tail = [];
      const thin = () => {
        const found = simplified(tail, false);
        for (let i = 0; i < found.length - 2; i++) done[done.length] = found[i];
        tail = [found[found.length - 2], found[found.length - 1]];
      };
      return {
        push(x, y) {
          const px = m[0] * (x - cx) + m[2] * (y - cy) + m[4] + cx;
          const py = m[1] * (x - cx) + m[3] * (y - cy) + m[5] + cy;
          if (!isFinite(px) || !isFinite(py)) return;
          tail[tail.length] = px;
          tail[tail.length] = py;
          if (tail.length >= 2 * LIMITS.chunk) thin();
        },
        path() {
          if (tail.length) thin();
          for (let i = 0; i < tail.length; i++) done[done.length] = tail[i];
          return written(done);
        },
        shape() {
          // About how wide the brush paints and how densely: the tip strays by its scatter, a stamp
          // is half a pixel at least, and stamps lie on each other. Measured on the stock brushes.
          const scale = hypot(m[0], m[1]);
          const { type } = tip;
          const plain = type === "default";
          const spread = plain ? 1.8 * hypot(tip.sharpness, 1 - tip.sharpness) : 1.8;
          const width = max(1, scale * pigment.weight * (tip.weight + spread * tip.scatter));
          const across = scale * tip.weight * (type === "spray" ? 1 : pigment.weight);
          const stamps = (plain ? min(1, tip.grain) : type === "spray" ? tip.grain : 1) / (scale * tip.spacing);
          const alpha = tip.opacity / 255 / (plain || type === "spray" ? 1 : min(pigment.weight, 1.3));
          const hidden = 1 - exp((-stamps * max(0.5, 0.6 * across * across) * alpha) / width);
          return {
            kind: group ? group.kind : "stroke",
            call,
            paths: [],
            colour: colourOf(pigment.color),
            opacity: share(hidden),
            brush: apply(toWellFormed, apply(slice, `${pigment.type}`, [0, LIMITS.name]), []),
            weight: size(pigment.weight),
            width: size(width),
          };
        },
      };
    };
    hooks.stroked = (trace, x, y) => {
      trace.push(x, y);
      const path = trace.path();
      if (path.length < 4 || points + path.length / 2 > most.points) {
        replay.truncated ||= path.length >= 4;
        return;
      }
      const shape = trace.shape();
      const open = group && group.shape;
      if (open && open.colour === shape.colour && open.brush === shape.brush) {
        points += path.length / 2;
        open.paths[open.paths.length] = path;
        return;
      }
      shape.paths[0] = path;
      const added = add(shape);
      if (group) group.shape = added;
    };
    hooks.within = (kind, draw) => {
      const outer = group;
      group = outer || { kind, shape: null }; // the hatching of a mass is the mass'
      try {
        return draw();
      } finally {
        group = outer;
      }
    };

    // Which of p5.brush's functions was called, and the paper under it all.
    for (const name of [
      "arc", "circle", "endShape", "endStroke", "flowLine", "hatchArray", "line", "massArray",
      "polygon", "rect", "spline",
    ]) {
      const original = window.brush[name];
      window.brush[name] = (...values) => {
        const outer = call;
        call ||= name;
        try {
          return original(...values);
        } finally {
          call = outer;
        }
      };
    }
    const proto = window.p5.prototype;
    const { background, clear } = proto;
    const paper = (instance, colour, opacity) => {
      // p5.brush clears its masks in the same way.
      if (instance._renderer?.activeFramebuffer?.()) return;
      add({ kind: "paper", call: "background", paths: [], colour, opacity });
    };
    proto.background = function (...values) {
      const result = apply(background, this, values);
      try {
        const colour = this.color(...values);
        paper(this, colourOf(colour), share(colour._array[3]));
      } catch {} // a picture may be given instead: it has no colour
      return result;
    };
    proto.clear = function (...values) {
      paper(this, "#ffffff", 1);
      return apply(clear, this, values);
    };
    return replay;
  };
})();
