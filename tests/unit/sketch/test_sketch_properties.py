"""What holds for every sketch: admitted names, refused evasions, no exceptions, linear work."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.sketch.evasions import EVASIONS
from tests.unit.sketch.sketches import GOOD, codes, violations

from watercolour.api.spec import Gate
from watercolour.sketch import gate
from watercolour.sketch.names import CODE_MEMBERS, KNOWN, NEEDED, PAGE_MEMBERS
from watercolour.sketch.parse import Node, parse

SKETCHES = {path.stem: path.read_text("utf-8") for path in GOOD}
WORDS = [
    "arc(1, 2, 3)",
    "circle",
    "fetch('https://x')",
    "eval",
    "text('rose')",
    "<!--",
    "-->",
    "brush.foo",
    "window",
    "constructor",
    "`${x}`",
    "// /* ' \"",
    "Blüte 花",
]
RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    arguments await break case catch class const continue debugger default delete do else enum
    eval export extends false finally for function if implements import in instanceof
    interface let new null package private protected public return static super switch this
    throw true try typeof undefined var void while with yield NaN Infinity brush Math
    createCanvas WEBGL
    """,
    )
)
#: Names of which no sketch may have a member, whatever it means by it.
FORBIDDEN = RESERVED | CODE_MEMBERS | PAGE_MEMBERS | NEEDED
names = st.one_of(
    st.sampled_from(sorted(KNOWN - FORBIDDEN)),
    st.from_regex(r"[a-zA-Z_$][a-zA-Z0-9_$]{0,8}", fullmatch=True),
    st.sampled_from(["é", "花", "π2"]),
).filter(lambda name: name not in FORBIDDEN)
comments = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A valid sketch whose names and comments are anything."""
    shape, size, many, item, kind = draw(st.lists(names, min_size=5, max_size=5, unique=True))
    remark = draw(comments)
    block = draw(comments).replace("*/", "")
    layers = draw(st.integers(1, 9))
    return f"""// {remark}
const {many} = ["#d8382b", '#f2906e'], {kind} = {{ {item}: 3, "{size}": 4 }};
class {shape}_ {{
  /* {block} */
  #{item} = {layers};
  get {size}() {{ return this.#{item} * 2; }}
  {shape}({item} = 1) {{ return {item} + this.{size}; }}
}}
function {shape}({size}, {item}) {{
  const {many} = (({kind}) => {kind} % 2)({item}); // {remark}
  brush.beginShape(0.5);
  for (let {kind} = 0; {kind} < {size}; {kind}++) {{
    brush.vertex({kind} * {layers}, {item} + {many} / 2);
  }}
  brush.endShape(true);
  return {item};
}}
function setup() {{
  createCanvas(192, 192, WEBGL);
  const {item} = [{layers}, {layers} * 2].map(({size}, {kind}) => {size} + {kind});
  brush.fill({many}[{layers} % 2], {kind}.{item});
  for (const {size} of {item}) {{
    {shape}({size} & 7, new {shape}_().{shape}({item}[0]) || {kind}["{size}"]);
  }}
}}
"""


@given(programs())
@settings(max_examples=150, deadline=None)
def test_valid_sketches_are_admitted_whatever_their_names_and_comments(sketch: str) -> None:
    assert violations(sketch) == ()


def statements(sketch: str) -> list[int]:
    """Offsets, in characters, at which a statement may be put in."""

    def offset(node: Node) -> int:
        return len(syntax.data[: node.start].decode("utf-8"))

    syntax = parse(sketch)
    lists = ("program", "statement_block")
    return [
        offset(node)
        for node in syntax.nodes
        if node.parent
        and node.parent.kind in lists
        and node.kind.endswith(("statement", "declaration"))
    ]


PLACES = {
    name: (sketch, statements(sketch))
    for name, sketch in SKETCHES.items()
    if name != "own_names"  # There `text` and `circle` are the sketch's own.
}
# Inside a class `this` is never the page, so these are evasions only outside of one.
ANYWHERE = [statement for statement, _ in EVASIONS if "this" not in statement]


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_an_evasion_is_refused_wherever_it_stands(data: st.DataObject) -> None:
    sketch, places = PLACES[data.draw(st.sampled_from(sorted(PLACES)))]
    statement = data.draw(st.sampled_from(ANYWHERE))
    place = data.draw(st.sampled_from(places))
    changed = f"{sketch[:place]}{statement}\n{sketch[place:]}"
    assert codes(changed) != [], changed


def check_never_raises(text: str) -> None:
    verdict = gate.inspect(text, Gate())
    if verdict.sketch is None:
        assert [v.code.value for v in verdict.violations] == ["no_sketch_in_response"]
        return
    lines = verdict.sketch.split("\n")
    for violation in verdict.violations:
        if violation.line is not None and violation.column is not None:
            assert violation.line <= len(lines)
            assert violation.column <= len(lines[violation.line - 1]) + 1


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_no_text_raises(text: str) -> None:
    check_never_raises(text)
    check_never_raises(f"```js\n{text}")


@given(st.binary())
@settings(max_examples=100, deadline=None)
def test_no_bytes_raise(data: bytes) -> None:
    check_never_raises("```js\nfunction setup() {" + data.decode("utf-8", "replace"))


@given(st.text(alphabet=st.characters(codec=None, categories=["Cs", "Zl", "Zp", "Cc", "Cf"])))
@settings(max_examples=50, deadline=None)
def test_no_control_characters_or_half_characters_raise(text: str) -> None:
    check_never_raises(f"```js\nfunction setup() {{ let a = '{text}'; }}")


@given(
    st.sampled_from(sorted(SKETCHES)),
    st.integers(0, 2_000),
    st.integers(0, 60),
    st.sampled_from(["", "}", "(", "`", "'", "/*", "${", "=>", "\\u0061", "#", "<!--"]),
)
@settings(max_examples=200, deadline=None)
def test_no_damaged_sketch_raises(name: str, start: int, length: int, put: str) -> None:
    sketch = SKETCHES[name]
    check_never_raises(sketch[:start] + put + sketch[start + length :])


@given(st.sampled_from(sorted(SKETCHES)), st.data())
@settings(max_examples=60, deadline=None)
def test_a_sketch_cut_inside_a_bracket_is_truncated(name: str, data: st.DataObject) -> None:
    sketch = SKETCHES[name]
    inside = [n for n in parse(sketch).nodes if n.kind == "statement_block"]
    block = data.draw(st.sampled_from(inside))
    start = len(sketch.encode()[: block.start].decode()) + 1
    end = len(sketch.encode()[: block.end].decode()) - 1
    cut = sketch[: data.draw(st.integers(start, end))]
    assert codes(cut) == ["truncated"]


def lines_run(sketch: str) -> int:
    """How many lines of Python a verdict takes."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        if "watercolour" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        gate.check(sketch, Gate())
    finally:
        sys.settrace(before)
    return count


def frame(body: str) -> str:
    return f"function setup() {{ createCanvas(99, 99, WEBGL); brush.circle(1, 1, 1); }}\n{body}"


GROWING = {
    "statements": lambda n: "brush.fill('#fff', 9);\n" * n,
    "declarations": lambda n: "".join(f"const a{i} = {i};\n" for i in range(n)),
    "chained variables": lambda n: (
        "let a0 = 'x';\n" + "".join(f"let a{i + 1} = a{i} + 'y';\n" for i in range(n)) + "[][a3];"
    ),
    "chained numbers": lambda n: (
        "let a0 = 'x';\n" + "".join(f"let a{i + 1} = a{i}; [][a{i}];\n" for i in range(n))
    ),
    "one variable": lambda n: "let s = 'a';\n" + "s += s; [][s];\n" * n,
    "properties": lambda n: "const o = {};\n" + "o.p = o.q; o.q = o['p'];\n" * n + "[][o.p + 'y'];",
    "templates": lambda n: "const t = 'r';\n" + "[][`${t}x`];\n" * n,
    "calls": lambda n: "function f(a) { return a; }\n" + "[][f('t')];\n" * n,
    "objects": lambda n: "const o = [" + "{ a: 1, b: [2, 'c'] }," * n + "]; o[o.x];",
    "patterns": lambda n: "let a, b;\n" + "[a, b] = [b, a];\n" * n,
    "members of this": lambda n: "class A { m() {" + "this.x += 1;" * n + "} }",
    "violations": lambda n: "circle(1); brush.bleed(1); fetch(1);\n" * n,
    "strings": lambda n: "let s = '" + "ab " * n + "';",
    "unclosed": lambda n: "f('" * n,
    "closed too often": lambda n: ")" * n,
    "template braces": lambda n: "`${`" * n,
    "prose": lambda n: "This is a sentence, and so on. " * n,
}


@pytest.mark.parametrize("grow", GROWING.values(), ids=GROWING.keys())
def test_work_grows_with_length_and_no_faster(grow: Any) -> None:
    small, large = lines_run(frame(grow(60))), lines_run(frame(grow(240)))
    assert large < 4.6 * small
