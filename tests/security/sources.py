"""Texts that are too long, too deep or no sketch at all."""

from __future__ import annotations

from typing import Any

from tests.security.attack import Attack, framed


def _source(name: str, tries: str, source: str, gate: str, **more: Any) -> Attack:
    options: dict[str, Any] = {"cpu_s": 20.0, **more}
    return Attack("source", name, tries, source, gate, **options)


ANY = frozenset(
    {
        "painted",
        "render_failed",
        "syntax_error",
        "sketch_timeout",
        "sketch_oom",
        "missing_entry_points",
    }
)
SOURCES = (
    _source(
        "five megabytes",
        "a text too long to read",
        framed(head="// " + "x" * 5_000_000),
        "too_long",
        browser=False,
    ),
    _source("a hundred thousand brackets", "a stack overflow", "[" * 100_000, "too_long", ends=ANY),
    _source(
        "forty thousand brackets",
        "a stack overflow below the limit of length",
        framed("[" * 20_000 + "]" * 20_000 + ";"),
        "too_long",
        ends=ANY,
    ),
    _source(
        "nested functions",
        "a scope in a scope",
        framed("(() => {" * 4_000 + "})()" * 4_000 + ";"),
        "too_long",
        ends=ANY,
    ),
    _source(
        "nested templates",
        "a text in a text",
        framed("`${" * 5_000 + "1" + "}`" * 5_000 + ";"),
        "too_long",
        ends=ANY,
    ),
    _source(
        "a sum of ten thousand",
        "a tree as deep as it is long",
        framed("const n = " + "1+" * 10_000 + "1;"),
        "too_long",
        ends=ANY,
    ),
    _source(
        "a name of a million letters",
        "a name too long to read",
        framed("const " + "x" * 1_000_000 + " = 1;"),
        "too_long",
        browser=False,
    ),
    _source(
        "a long name",
        "a name as long as the service lets it be",
        framed("const " + "x" * 190_000 + " = 1;"),
        "too_long",
        twin=True,
    ),
    _source("nothing", "an empty sketch", " ", "missing_entry_points", ends=ANY),
    _source(
        "binary", "bytes that are no text", "\x00\x01\x02\x7fELF\x00\xff", "syntax_error", ends=ANY
    ),
    _source(
        "vertex that is not a number",
        "a shape at NaN",
        framed(
            draw="brush.fill('red', 99); brush.beginShape(0.5); brush.vertex(NaN, 1);"
            " brush.vertex(Infinity, NaN); brush.vertex(-1e308, 1e308); brush.endShape(true);"
        ),
        "",
        admitted="numbers are known only when the sketch runs: the harness notes the error",
        ends=frozenset({"painted", "render_failed", "sketch_timeout"}),
        cpu_s=3.0,
    ),
    _source(
        "circle of an infinite radius",
        "a shape without end",
        framed(
            draw="brush.fill('red', 99); brush.circle(0, 0, Infinity); brush.circle(0, 0, 1e9);"
        ),
        "",
        admitted="numbers are known only when the sketch runs: the CPU budget decides",
        ends=frozenset({"painted", "render_failed", "sketch_timeout", "sketch_oom"}),
        cpu_s=3.0,
    ),
)
