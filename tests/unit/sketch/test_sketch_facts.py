"""What is counted in a sketch without painting it."""

from __future__ import annotations

from watercolour.sketch import facts


def counted(*draw: str, rest: str = "") -> facts.SketchFacts:
    body = "\n".join(draw)
    return facts.read(f"function setup() {{}}\n{rest}\nfunction draw() {{\n{body}\n}}\n")


def test_a_call_of_an_own_function_counts_for_the_fills_in_it() -> None:
    rest = """
    function pigment(c) { brush.fill(c, 9); brush.fillBleed(0.1); }
    const twice = (c) => { pigment(c); pigment(c); };
    function idle() { brush.fill("#000000", 9); }
    """
    found = counted('pigment("#ff0000");', 'twice("#00ff00");', 'brush.fill("#1", 2);', rest=rest)
    assert found.fills == 4
    assert {"fill", "fillBleed"} <= found.methods


def test_functions_that_call_each_other_are_counted_once_and_come_to_an_end() -> None:
    rest = """
    function a() { brush.fill("#0", 1); b(); }
    function b() { brush.fill("#1", 1); a(); }
    """
    assert counted("a();", rest=rest).fills == 2


def test_a_loop_counts_once_and_a_function_that_is_handed_over_counts() -> None:
    found = counted(
        'for (let i = 0; i < 9; i++) { brush.fill("#0", i); }',
        '[1, 2].forEach((x) => { brush.fill("#1", x); });',
    )
    assert found.fills == 2


def test_an_outline_is_one_shape_and_so_is_a_call_that_paints() -> None:
    rest = "function dab(x) { brush.beginShape(); brush.vertex(x, 1); brush.endShape(true); }"
    found = counted(
        "brush.beginShape(0.5);",
        "brush.vertex(1, 2);",
        "brush.endShape(true);",
        "dab(4);",
        "brush.circle(1, 2, 3);",
        "brush.wash('#ff0000', 9);",
        rest=rest,
    )
    assert found.shapes == (
        "brush.beginShape(0.5);brush.vertex(1,2);brush.endShape(true)",
        "dab(4)",
        "brush.circle(1,2,3)",
    )
