"""The static gate: what it admits, what it refuses, and where it says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sketch.evasions import EVASIONS
from tests.unit.sketch.sketches import FRAME, GOOD, codes, framed, violations

from watercolour.api.errors import InputError
from watercolour.api.reasons import ViolationCode
from watercolour.api.spec import Gate
from watercolour.sketch import gate
from watercolour.sketch.exports import METHODS, PAINTERS, TEN


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_sketch_is_admitted_whole(path: Path) -> None:
    sketch = path.read_text("utf-8")
    verdict = gate.inspect(sketch, Gate())
    assert verdict.violations == ()
    assert verdict.admitted
    assert verdict.sketch == sketch


@pytest.mark.parametrize(("statement", "code"), EVASIONS, ids=[e[0][:50] for e in EVASIONS])
def test_an_evasion_is_refused(statement: str, code: str) -> None:
    assert code in codes(framed(statement))


@pytest.mark.parametrize(("statement", "code"), EVASIONS, ids=[e[0][:50] for e in EVASIONS])
def test_a_violation_points_at_the_statement(statement: str, code: str) -> None:
    found = [v for v in violations(framed(statement)) if v.code == code]
    last = 7 + statement.count("\n")
    assert all(v.line is not None and 7 <= v.line <= last for v in found)
    assert all(v.message.endswith((".", "?")) and len(v.message) < 200 for v in found)


PLACES = [
    ("brush.bleed(0.3);", "unknown_brush_method", 7, 9),
    ("let a = 1;\n  let ü = circle(1, 2, 3);", "bare_primitives", 8, 11),
    ("const k = 'con' + 'structor'; [][k];", "dynamic_code", 7, 36),
    ("eval('1');", "dynamic_code", 7, 3),
]


@pytest.mark.parametrize(("statement", "code", "line", "column"), PLACES)
def test_line_and_column_count_characters_from_one(
    statement: str, code: str, line: int, column: int
) -> None:
    first = next(v for v in violations(framed(statement)) if v.code == code)
    assert (first.line, first.column) == (line, column)


ADMITTED = [
    "function line(x) { return x; } line(1);",
    "const text = (words) => words; text('rose');",
    "let rect = { x: 1 }; rect.x += 1;",
    "((circle) => circle(1))((r) => r);",
    "for (const point of [1, 2]) point.toFixed(1);",
    "try { throw new Error('x'); } catch (arc) { console.log(arc); }",
    "class Vertex { get text() { return 1; } image() { return this.text; } } new Vertex().image();",
    "const label = { text() { return 'rose'; } }; label.text();",
    "// circle(1, 2, 3); fetch('x'); text('rose') eval",
    "/* import x; brush.foo() <!-- --> \n window.fetch */",
    "const note = 'circle(1, 2, 3); fetch(x); text; eval(1)';",
    "const { sin, cos: c } = Math; sin(c(1));",
    "const o = {}; o.fill = 1; o['name'] = 2; o.top = o.name;",
    "const palette = { pale: '#fff' }; const key = 'pale'; brush.fill(palette[key], 100);",
    "const palette = { a1: 1 }; for (const key in palette) palette[key] += 1;",
    "const palette = { a1: 1 }; for (let i = 1; i < 2; i++) palette['a' + i] += 1;",
    "const tones = {}; for (let i = 0; i < 2; i++) tones['pro' + i + 'type'] = i;",
    "const o = { x: 1, y: 2 }, parts = []; for (let i = 0; i < 2; i++) parts[i] = 'con';"
    " parts[o.x + o.y];",
    "const p = [[1, 2], [3, 4]]; const q = p.map(([x, y]) => [x + y, y]); q[0][1];",
    "function at(list, i) { return list[i + 1]; } at([1, 2], 0);",
    "const list = [3, 1]; list.sort((a, b) => a - b); list[list.length - 1];",
    "const list = ['#fff']; const pick = list[floor(random(list.length))]; brush.fill(pick, 9);",
    "brush.fill(`hsl(${random(360)}, 60%, 50%)`, 100);",
    "const own = {}; Object.defineProperty(own, 'size', { get() { return 1; } }); own.size;",
    "const copy = JSON.parse(JSON.stringify({ a: [1] })); copy.a[0];",
    "const { a = 1, ...rest } = { a: 2, b: 3 }; rest.b + a;",
    "a1 = 5; a1 += 1;",
    "let x = 3; while (x --> 0) ;",
    "const half = (a) => a / 2 / 3; half(4) / 5;",
    "const parts = 'a-b'.split(/-/); parts.length / 2;",
    "if (typeof brush !== 'undefined') brush.noFill();",
    "(async () => { await null; for await (const x of []) x; })();",
    "const of = 1, get = 2, set = 3, async = 4; of + get + set + async;",
    "new Date().getFullYear() + millis();",
    "const v = createVector(1, 2); v.add(p5.Vector.random2D()).mult(2);",
    "label: for (;;) { break label; }",
    "const big = 10n ** 2n, u = undefined ?? NaN; [big, u].length;",
    "var circle = 3; circle + 1;",
    "const arrow = () => ({ constructor_: 1 }); arrow().constructor_;",
    "const r = random(), t = r < 0.5 ? 'a' : 'b'; ({ a: 1, b: 2 })[t];",
    "brush.add('soft', { type: 'custom', tip: (m) => m.rect(0, 0, 2, 2) });",
    "new (class { #x = 1; static { this.y = 2; } get x() { return this.#x; } })().x;",
]


@pytest.mark.parametrize("statement", ADMITTED)
def test_what_good_sketches_write_is_admitted(statement: str) -> None:
    assert violations(framed(statement)) == ()


SETUP = "function setup() { createCanvas(99, 99, WEBGL); CALL; }"
PAINTS = SETUP.replace("CALL", "brush.circle(1, 1, 1)")
FAKE = "const brush = { circle() {} };"
SHAPES = [
    ("function draw() { brush.circle(0, 0, 9); }", ["missing_entry_points", "not_webgl"]),
    (f"const setup = 3; {PAINTS.replace('setup', 'start')}", ["missing_entry_points"]),
    (f"{{ {PAINTS} }}", ["missing_entry_points"]),
    (PAINTS.replace(", WEBGL", ""), ["not_webgl"]),
    (PAINTS.replace("WEBGL", "P2D"), ["not_webgl"]),
    (f"const WEBGL = 1; {PAINTS}", ["not_webgl"]),
    (f"const mode = WEBGL; {PAINTS.replace(', WEBGL', ', mode')}", []),
    (SETUP.replace("CALL", "brush.fill('#fff', 9)"), ["no_painting_calls"]),
    (SETUP.replace("CALL", "1") + " // brush.circle(1, 1, 1)", ["no_painting_calls"]),
    (SETUP.replace("CALL", f"{FAKE} brush.circle()"), ["no_painting_calls"]),
    (f"{FAKE} {PAINTS}", ["harness_tampering", "no_painting_calls"]),
    (f"{PAINTS}\nfunction noLoop() {{}}", ["harness_tampering"]),
    (f"{PAINTS}\n{{ function noLoop() {{}} }}", ["harness_tampering"]),
    (f"{PAINTS}\nfunction tone() {{ function noLoop() {{}} }}", []),
    (f"{PAINTS}\nfunction constructor() {{}}", ["dynamic_code"]),
    (f"{PAINTS}\ncaches; var caches;", ["external_access"]),
    (f"caches; {PAINTS} var caches = 3;", ["external_access"]),
    (f"{PAINTS} if (0) var caches = 3; caches;", ["external_access"]),
    (f"{PAINTS} var caches = 3; caches;", []),
    (f"{PAINTS}\nexport default 1;", ["syntax_error"]),
    (f"import 'y';\n{PAINTS}", ["external_access"]),
    (PAINTS.replace("(1, 1, 1)", "(petls)"), ["external_access"]),
]


@pytest.mark.parametrize(("sketch", "expected"), SHAPES)
def test_the_outline_of_a_sketch_is_judged(sketch: str, expected: list[str]) -> None:
    assert codes(sketch) == expected


@pytest.mark.parametrize("painter", sorted(PAINTERS))
def test_any_painter_is_enough_to_paint(painter: str) -> None:
    sketch = SETUP.replace("CALL", f"brush.{painter}()")
    assert codes(sketch) == []


@pytest.mark.parametrize("method", sorted(METHODS - PAINTERS))
def test_no_other_method_is(method: str) -> None:
    sketch = SETUP.replace("CALL", f"brush.{method}()")
    assert codes(sketch) == ["no_painting_calls"]


def test_an_unknown_method_gets_a_suggestion() -> None:
    assert "fillBleed" in violations(framed("brush.bleed(0.2);"))[0].message
    assert "circle" in violations(framed("brush.cirle(1, 2, 3);"))[0].message


def test_a_misspelt_name_gets_a_suggestion() -> None:
    (found,) = violations("let petals = 3;\n" + framed("petal.x;"))
    assert "`petals`" in found.message


def test_the_ten_are_enforced_when_asked_for() -> None:
    assert codes(framed("brush.load(); brush.noStroke();"), allow=["ten"]) == []
    assert codes(framed("brush.spline([[0, 0], [1, 1]]);"), allow=["ten"]) == [
        "unknown_brush_method"
    ]
    assert codes(framed("brush.spline([[0, 0], [1, 1]]);"), allow=["all"]) == []


def test_a_list_of_names_is_enforced() -> None:
    assert codes(framed("1;"), allow=["fill", "circle"]) == []
    assert codes(framed("brush.noStroke();"), allow=["fill", "circle"]) == ["unknown_brush_method"]


def test_an_unknown_name_in_the_list_is_an_input_error() -> None:
    with pytest.raises(InputError, match="bleed") as raised:
        violations(framed("1;"), allow=["fill", "bleed"])
    assert raised.value.field == "spec.recipe.gate.allow"
    assert raised.value.value == ["bleed"]
    assert "fillBleed" in raised.value.remedy


def test_the_ten_are_real_methods() -> None:
    assert len(METHODS) == 47
    assert len(TEN) == 10
    assert TEN < METHODS
    assert PAINTERS < METHODS


def test_a_long_sketch_is_refused_before_it_is_parsed() -> None:
    assert codes("(" * 2_000_000) == ["too_long"]
    assert codes(FRAME % ("1;" * 100), max_characters=100) == ["too_long"]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("I would rather not paint today. " * 65_000, "no_sketch_in_response"),
        ("9" * 2_000_000, "no_sketch_in_response"),
        ("```html\n" + "<p>Sorry</p>" * 170_000 + "\n```", "no_sketch_in_response"),
        # Whoever labels a block as JavaScript means it as the sketch.
        ("```js\n" + "9" * 2_000_000 + "\n```", "too_long"),
        (FRAME % ("brush.circle(1, 1, 1);\n" * 90_000), "too_long"),
    ],
)
def test_two_megabytes_are_too_long_only_where_there_is_a_sketch(reply: str, code: str) -> None:
    assert [found.code for found in gate.inspect(reply, Gate()).violations] == [code]


def test_deep_nesting_is_refused() -> None:
    assert codes(framed("[" * 5_000 + "]" * 5_000 + ";")) == ["too_long"]
    assert codes(framed("1" + "+1" * 5_000 + ";")) == ["too_long"]


TRUNCATED = [
    ("function draw() {\n  brush.circle(30", 2, 17),
    ("function draw() {\n  let x = [1, 2,\n\n", 2, 16),
    ("function draw() {\n  let x = 'ab", 2, 13),
    ("function draw() {\n  let x = `ab ${y", 2, 17),
    ("function draw() {\n  let x = `ab {", 2, 15),
    ("function draw() {\n} /* and so", 2, 11),
    ("function draw() { // and so", 1, 27),
]


@pytest.mark.parametrize(("sketch", "line", "column"), TRUNCATED)
def test_a_sketch_that_stops_in_the_middle_is_truncated(
    sketch: str, line: int, column: int
) -> None:
    (found,) = violations(sketch)
    assert found.code is ViolationCode.TRUNCATED
    assert (found.line, found.column) == (line, column)


SYNTAX = [
    ("function draw() {\n  let let = 3;\n}", 2),
    ("function draw() {\n  brush.circle(1, 2));\n}", 2),
    ("function draw() {\n  brush.circle(1, ;\n}\n}", 2),
    ("function draw() {}}", 1),
    ("let x = 'ab\nc';", 1),
    ("<b>rose</b>", 1),
    ("#!/usr/bin/env node\nlet x;", 1),
    ("let x = \ud800;", 1),
]


@pytest.mark.parametrize(("sketch", "line"), SYNTAX)
def test_a_syntax_error_has_its_place(sketch: str, line: int) -> None:
    found = violations(sketch)
    assert found[0].code is ViolationCode.SYNTAX_ERROR
    assert found[0].line == line


def test_a_reply_without_a_sketch_has_its_own_code() -> None:
    verdict = gate.inspect("I am sorry, I cannot paint.", Gate())
    assert verdict.sketch is None
    assert [v.code for v in verdict.violations] == [ViolationCode.NO_SKETCH_IN_RESPONSE]


def test_a_verdict_lists_no_more_than_twenty_violations() -> None:
    assert len(violations(framed("circle(1);" * 100))) == gate.MAX_VIOLATIONS
