"use strict";
(() => {
  const panel = document.getElementById("panel");
  const tip = document.getElementById("tip");
  let parsed = null;
  // Parsed on the first click: most visits only look at the paintings.
  const data = () => (parsed ??= JSON.parse(document.getElementById("data").textContent));

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };
  const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(3).replace("-", "−"));

  const TOKEN = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\b(async|await|function|const|let|var|return|if|else|for|while|of|in|new|class|true|false|null)\b|\b(\d+(?:\.\d+)?)\b/g;
  const highlighted = (line) => {
    const parts = [];
    let from = 0;
    for (const found of line.matchAll(TOKEN)) {
      if (found.index > from) parts.push(line.slice(from, found.index));
      const kind = found[1] ? "c" : found[2] ? "s" : found[3] ? "k" : "n";
      parts.push(make("span", { class: kind }, found[0]));
      from = found.index + found[0].length;
    }
    parts.push(line.slice(from));
    return parts;
  };
  const code = (text, bad) => {
    const lines = text.replace(/\n$/, "").split("\n");
    return make("pre", {}, ...lines.map((line, at) =>
      make("span", { class: bad.has(at + 1) ? "l bad" : "l" }, ...highlighted(line))));
  };
  const table = (rows) => make("table", {}, ...rows.map((row) =>
    make("tr", {}, ...row.map((cell) => make("td", {}, String(cell))))));
  const section = (title, ...content) => (content.length ? [make("h3", {}, title), ...content] : []);

  const view = (rollout, thumb) => {
    if (!rollout.painting) return null;
    const image = make("img", { alt: rollout.subject, src: rollout.painting });
    const link = make("a", { class: "view", href: rollout.painting, target: "_blank", rel: "noopener" }, image);
    // The page may have travelled without its folder.
    image.addEventListener("error", () => {
      if (thumb && image.src !== thumb) { image.src = thumb; link.classList.add("fallback"); }
    }, { once: true });
    return link;
  };
  const terms = (rollout) => Object.entries(rollout.terms).map(([name, value]) => {
    const level = make("b");
    level.style.width = `${100 * Math.max(0, Math.min(1, value ?? 0))}%`;
    return make("div", { class: "term" }, make("span", {}, name), make("i", {}, level), make("span", {}, number(value)));
  });
  const votes = (rollout) => {
    const said = { 1: "won", 0.5: "orders disagree", 0: "lost" };
    return rollout.votes.map(([reference, first, second, value]) =>
      [reference, `${first ?? "–"} / ${second ?? "–"}`, value === null ? "not resolved" : said[value] ?? value]);
  };

  let order = [];
  let place = -1;
  const show = (at) => {
    place = at;
    const tile = order[at];
    const { rollouts, sketches } = data();
    const r = rollouts[Number(tile.dataset.n)];
    const thumb = tile.querySelector("img")?.src;
    const bad = new Set(r.violations.map(([, line]) => line).filter((line) => line !== null));
    const bar = make("div", { class: "bar" },
      ...[["‹", -1, "Previous"], ["›", 1, "Next"]].map(([sign, by, label]) => {
        const button = make("button", { type: "button", "aria-label": label }, sign);
        button.addEventListener("click", () => move(by));
        return button;
      }));
    const close = make("button", { type: "button", "aria-label": "Close" }, "×");
    close.addEventListener("click", () => panel.close());
    bar.append(close);
    const facts = [
      ["reward", number(r.reward)], ["adjusted for the draw", number(r.adjusted)], ["advantage", number(r.advantage)],
      ["scorer's mu", number(r.mu)], ["expected wins of an okay painting in this draw", number(r.draw)],
      ["painted share of the canvas", number(r.paint)], ["of its pigment, in the subject's colours", number(r.pigment)], ["filled shapes", r.shapes ?? "–"],
      ["tokens", r.truncated ? `${r.tokens}, cut off` : r.tokens], ["tries", r.attempts],
    ];
    const draw = r.votes.length
      ? section("Votes (painting as A / as B)", table(votes(r)))
      : r.references.length ? section("References", table(r.references.map((name) => [name]))) : [];
    const timings = Object.entries(r.timings).map(([room, seconds]) => [room, `${seconds.toFixed(2)} s`]);
    panel.replaceChildren(bar, ...[
      make("h2", {}, r.subject),
      make("p", { class: "aside" }, `step ${r.step} · group ${r.group} · rollout ${r.index} · ${r.state}`),
      view(r, thumb),
      ...r.violations.map(([name, line, , message]) =>
        make("p", { class: "violation" }, make("code", {}, name), line === null ? " " : ` line ${line}: `, message)),
      r.unscored ? make("p", { class: "violation infra" }, r.unscored) : null,
      ...r.errors.map((text) => make("p", { class: "violation" }, "JavaScript: ", text)),
      ...section("Terms", ...terms(r)),
      make("h3", {}, r.extracted ? "Sketch" : "Completion (no sketch was found in it)"),
      code(sketches[r.sketch], bad),
      ...draw,
      ...section("Figures", table(facts)),
      ...(timings.length ? section("Time by room", table(timings)) : []),
    ].filter((part) => part !== null));
    if (!panel.open) {
      panel.showModal();
      panel.focus();
    }
    panel.scrollTop = 0;
  };
  const move = (by) => {
    const next = place + by;
    if (next >= 0 && next < order.length) show(next);
  };

  document.addEventListener("click", (event) => {
    const tile = event.target.closest("a.tile");
    // With a modifier key the link opens the full-size painting.
    if (tile && !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      order = [...tile.closest(".tiles, .grid, .strip").querySelectorAll("a.tile")];
      show(order.indexOf(tile));
    } else if (event.target === panel) {
      const box = panel.getBoundingClientRect();
      if (event.clientX < box.left) panel.close();
    }
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") move(-1);
    if (event.key === "ArrowRight") move(1);
  });
  panel.addEventListener("close", () => panel.replaceChildren());

  for (const chart of document.querySelectorAll(".chart")) {
    const cursor = chart.querySelector(".cursor");
    chart.addEventListener("pointermove", (event) => {
      const at = event.target.closest(".hover");
      if (!at) return;
      const [, , width, height] = chart.getAttribute("viewBox").split(" ").map(Number);
      cursor.setAttribute("d", `M${at.dataset.x} 18V${height - 30}`);
      at.dataset.told ??= at.querySelector("title").textContent;
      // The native tooltip would cover ours.
      at.querySelector("title")?.replaceChildren();
      tip.textContent = at.dataset.told.replaceAll(" · ", "\n");
      tip.hidden = false;
      const box = chart.getBoundingClientRect();
      const x = box.left + (Number(at.dataset.x) / width) * box.width;
      const left = x > innerWidth / 2 ? x - tip.offsetWidth - 14 : x + 14;
      tip.style.left = `${Math.max(6, left)}px`;
      tip.style.top = `${Math.max(6, event.clientY - tip.offsetHeight - 8)}px`;
    });
    chart.addEventListener("pointerleave", () => { tip.hidden = true; cursor.setAttribute("d", ""); });
    chart.addEventListener("click", (event) => {
      const at = event.target.closest(".hover");
      if (at) location.hash = `step-${at.dataset.step}`;
    });
  }

  const chips = document.querySelectorAll(".chips button");
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
      const subject = chip.dataset.subject;
      for (const tile of document.querySelectorAll("#all .tile")) {
        tile.hidden = subject !== "" && data().rollouts[Number(tile.dataset.n)].subject !== subject;
      }
      for (const step of document.querySelectorAll(".step")) {
        step.hidden = !step.querySelector(".tile:not([hidden])");
      }
    });
  }
})();
