import { actId, ask } from "./ask.js";
import { $, kept, make } from "./dom.js";
import { theme } from "./theme.js";

const TIERS = ["love", "okay", "meh"];
const page = $("page");

// What the server said last, and what this window wants of it.
let seen = null;
const want = { rater: "", mode: location.hash === "#pairs" ? "pairs" : "tiers", skipped: [], wanted: null };
// The act that is under way or could not be saved; nothing else is sent before it is.
let pending = null;

const busy = () => page.dataset.ready !== "true";

const send = async (path, body = {}) => {
  pending = { path, body };
  page.dataset.ready = "false";
  if (path !== "state") $("saved").textContent = "saving…";
  try {
    seen = await ask(`/api/rating/${path}`, { ...want, ...body });
  } catch (error) {
    $("saved").textContent = path === "state" ? "" : "not saved";
    $("trouble").querySelector("p").textContent = error.message;
    $("trouble").hidden = false;
    return;
  }
  pending = null;
  want.wanted = null;
  $("trouble").hidden = true;
  $("saved").textContent = path === "state" ? "" : path === "undo" ? "taken back" : "saved";
  await show();
};

const act = (path, body) => {
  if (!busy()) send(path, { id: actId(), ...body });
};

// Painted before it is shown: no key press may meet a painting that nobody has seen.
const painted = async (image, painting) => {
  image.alt = `A painting of ${painting.subject}`;
  if (image.getAttribute("src") !== painting.url) image.src = painting.url;
  try { await image.decode(); } catch { image.alt = "This painting cannot be shown: leave it out."; }
};

const show = async () => {
  const { mode, item, pair } = seen;
  const over = mode === "tiers" ? !item : !pair;
  $("pool").textContent = seen.pool.name;
  $("who").textContent = seen.rater;
  $("one").hidden = mode !== "tiers" || over;
  $("two").hidden = mode !== "pairs" || over;
  $("done").hidden = !over;
  for (const button of document.querySelectorAll(".switch button")) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  }
  $("undo").disabled = seen.recent.length === 0;
  $("skip").hidden = $("aside").hidden = mode !== "tiers" || over;
  progress();
  recent();
  ladder();
  agreement();
  if (over) finished();
  else if (mode === "tiers") {
    $("subject").textContent = item.subject;
    for (const button of $("one").querySelectorAll(".choice")) {
      button.setAttribute("aria-pressed", String(button.dataset.said === item.said));
    }
    await painted($("painting"), item);
    for (const url of seen.next) new Image().src = url;
  } else {
    await Promise.all([painted($("left"), pair[0]), painted($("right"), pair[1])]);
  }
  page.dataset.ready = "true";
};

const progress = () => {
  const bar = document.querySelector(".progress");
  const pairs = seen.mode === "pairs";
  const [now, of] = pairs ? [Math.round(100 * seen.sureness), 100] : [seen.rated, seen.total];
  bar.setAttribute("aria-valuemax", of);
  bar.setAttribute("aria-valuenow", now);
  $("bar").style.width = `${of ? (100 * now) / of : 0}%`;
  $("count").textContent = pairs
    ? `${seen.pairs} compared · the order is ${now} % sure`
    : `${seen.rated} of ${seen.total}`;
};

const thumb = (url, alt) => make("img", { src: url, alt, width: 44, height: 44, draggable: "false" });

const recent = () => {
  const tiles = seen.recent.map(({ kind, name, url, said }) => {
    if (kind === "pair") return make("span", { class: said, title: said === "even" ? "no difference" : "the better one" }, thumb(url, said));
    const tile = make("button", { type: "button", class: said, title: `${said}: look again` }, thumb(url, `rated ${said}`));
    tile.addEventListener("click", () => again(name));
    return tile;
  });
  $("recent").replaceChildren(...tiles);
};

const ladder = () => {
  const rungs = seen.mode === "pairs" ? seen.ladder : [];
  $("ladder").hidden = seen.pairs === undefined || seen.pairs === 0 || rungs.length === 0;
  $("ladder").replaceChildren(make("b", {}, "strongest so far"), ...rungs.map(({ url, strength }, place) =>
    make("span", { title: `strength ${strength.toFixed(2)}` }, thumb(url, `place ${place + 1}`), make("em", {}, String(place + 1)))));
};

const agreement = () => {
  const found = seen.agreement;
  $("agreement").hidden = !found;
  if (!found) return;
  const look = make("button", { type: "button" }, found.disputes ? `Look at the ${found.disputes === 1 ? "disputed one" : `${found.disputes} disputed ones`}` : "Look closer");
  look.addEventListener("click", differ);
  $("agreement").replaceChildren(`${raters()}. Agreement on ${found.shared} shared: ${worth(found)}. `, look);
};

const raters = () => seen.raters.filter((rater) => rater.rated).map((rater) => `${rater.name} ${rater.rated}`).join(", ");
const worth = ({ alpha, tentative }) => alpha === null
  ? "too few to tell"
  : `α ${alpha.toFixed(2)}${alpha < tentative ? ", too low to rely on" : ""}`;

// Who said what, of paintings that this rater has rated herself.
const differ = () => {
  const { alpha: value, tentative, shared, disputed, disputes } = seen.agreement;
  const scale = $("scale");
  scale.hidden = value === null;
  scale.setAttribute("aria-label", `Krippendorff’s α ${value?.toFixed(2)}, to rely on from ${tentative}`);
  scale.style.setProperty("--alpha", Math.max(0, value ?? 0));
  scale.style.setProperty("--tentative", tentative);
  scale.querySelector("b").textContent = value === null ? "" : value.toFixed(2);
  const hidden = disputes - disputed.length;
  $("differ-said").textContent = [
    `${shared} paintings have more than one rating, and ${disputes === 0 ? "nobody differs" : disputes === 1 ? "raters differ on one" : `raters differ on ${disputes}`}.`,
    value !== null && value < tentative ? "Talk about what a tier means before you rely on them." : "",
    disputed.length ? "Click a painting to rate it again." : "",
    hidden > 0 ? `${hidden} more will be shown once you have rated ${hidden === 1 ? "it" : "them"}.` : "",
  ].filter(Boolean).join(" ");
  $("disputed").replaceChildren(...disputed.map(({ name, url, said }) => {
    const lines = Object.entries(said).map(([who, tier]) => make("span", { class: tier }, make("b", {}, who), tier === "aside" ? "left out" : tier));
    const words = Object.entries(said).map(([who, tier]) => `${who} ${tier}`).join(", ");
    const tile = make("button", { type: "button", "aria-label": `${words}: rate it again` }, make("img", { src: url, alt: "", draggable: "false" }), ...lines);
    tile.addEventListener("click", () => { $("differ").close(); again(name); });
    return tile;
  }));
  $("differ").showModal();
};

const finished = () => {
  const empty = seen.total === 0;
  const pairs = seen.mode === "pairs";
  $("done-title").textContent = empty ? "There is no painting yet" : pairs ? "Every pair has been compared" : `All ${seen.total} are rated`;
  const most = Math.max(1, ...TIERS.map((tier) => seen.tally[tier]));
  $("bars").replaceChildren(...TIERS.flatMap((tier) => [
    make("span", {}, tier),
    make("meter", { class: tier, min: 0, max: most, value: seen.tally[tier], "aria-label": tier }),
    make("span", {}, String(seen.tally[tier])),
  ]));
  const missing = TIERS.filter((tier) => seen.tally[tier] === 0);
  $("done-next").replaceChildren(...(empty
    ? ["Make some: ", make("code", {}, "watercolour pool generate")]
    : missing.length
      ? [`No painting is ${missing.join(", none ")}. A pool with every tier can be made easier or harder later.`]
      : ["Next: ", make("code", {}, "watercolour pool calibrate"), " tells whether an untrained policy wins enough against them."]));
  $("go-pairs").hidden = empty || pairs || seen.total < 2;
};

const again = (name) => {
  if (busy()) return;
  want.mode = "tiers";
  want.wanted = name;
  send("state");
};

const say = (said) => { if (seen?.item) act("rate", { name: seen.item.name, said }); };
const prefer = (won) => { if (seen?.pair) act("compare", { left: seen.pair[0].name, right: seen.pair[1].name, won }); };
const later = () => {
  if (busy() || !seen?.item) return;
  want.skipped = [...want.skipped.filter((name) => name !== seen.item.name), seen.item.name];
  send("state");
};
const mode = (name) => {
  if (busy() || want.mode === name) return;
  want.mode = name;
  history.replaceState(null, "", name === "pairs" ? "#pairs" : "#");
  send("state");
};

const rename = () => {
  $("name-text").value = want.rater;
  $("name").showModal();
  $("name-text").select();
};
$("name").addEventListener("close", () => {
  const name = $("name-text").value.trim().toLowerCase();
  if ($("name").returnValue === "ok" && name) {
    want.rater = name;
    want.skipped = [];
    kept.set("rater", name);
    send("state");
  }
});

for (const button of $("one").querySelectorAll(".choice")) button.addEventListener("click", () => say(button.dataset.said));
for (const button of $("two").querySelectorAll("[data-won]")) button.addEventListener("click", () => prefer(button.dataset.won));
for (const button of document.querySelectorAll(".switch button")) button.addEventListener("click", () => mode(button.dataset.mode));
$("undo").addEventListener("click", () => act("undo", {}));
$("skip").addEventListener("click", later);
$("aside").addEventListener("click", () => say("aside"));
$("go-pairs").addEventListener("click", () => mode("pairs"));
$("who").addEventListener("click", rename);
$("help").addEventListener("click", () => $("keys").showModal());
$("again").addEventListener("click", () => { if (pending) send(pending.path, pending.body); });

const KEYS = {
  tiers: { 1: () => say("meh"), 2: () => say("okay"), 3: () => say("love"), s: later, x: () => say("aside") },
  pairs: { ArrowLeft: () => prefer("left"), ArrowRight: () => prefer("right"), ArrowDown: () => prefer("even"), 1: () => prefer("left"), 2: () => prefer("even"), 3: () => prefer("right") },
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const done = key === "z" ? () => act("undo", {}) : key === "?" ? () => $("keys").showModal() : KEYS[want.mode][key];
  if (!done) return;
  event.preventDefault();
  done();
});

// Who clicks goes on with the keys: a button that was clicked keeps no ring around it.
document.addEventListener("click", (event) => { if (event.detail > 0) event.target.closest("button")?.blur(); });

theme($("theme"));
const { rater } = await ask("/api/rating/rater").catch(() => ({ rater: "" }));
want.rater = rater || kept.get("rater", "");
if (want.rater) await send("state");
else rename();
