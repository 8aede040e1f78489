"""Which text of a chat reply is the sketch."""

from __future__ import annotations

import pytest

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.sketch.extract import decode, extract

SKETCH = """\
function setup() {
  createCanvas(192, 192, WEBGL);
  brush.circle(0, 0, 60);
}"""
DRAFT = SKETCH.replace("60", "10")


def fenced(body: str, label: str = "javascript", fence: str = "```") -> str:
    return f"{fence}{label}\n{body}\n{fence}\n"


FOUND = {
    "a javascript block": fenced(SKETCH),
    "a js block": fenced(SKETCH, "js"),
    "a p5 block": fenced(SKETCH, "p5.js"),
    "a block in capitals": fenced(SKETCH, "JavaScript"),
    "a block without a label": fenced(SKETCH, ""),
    "a block with an odd label": fenced(SKETCH, "sketch"),
    "a label with attributes": fenced(SKETCH, 'js title="sketch.js"'),
    "a block of tildes": fenced(SKETCH, "js", "~~~"),
    "a longer fence": fenced(SKETCH, "js", "````"),
    "prose around": f"Here is the painting:\n\n{fenced(SKETCH)}\nEnjoy it!",
    "an indented fence": f"1. So:\n   ```js\n{SKETCH}\n   ```",
    "a fence that never closes": f"Sure.\n```js\n{SKETCH}",
    "a bare sketch": SKETCH,
    "a bare sketch after prose": f"Here is the sketch:\n\n{SKETCH}",
    "a bare sketch before prose": f"{SKETCH}\n\nThis paints one petal.",
    "a sketch after a thought": f"<think>function setup() {{}}</think>\n{fenced(SKETCH)}",
    "a sketch after a thought that the template opened": f"hm, ```js\nx\n```</think>{SKETCH}",
    "a sketch between thoughts": f"<think>a</think>\n{fenced(SKETCH)}<thinking>b</thinking>",
    "a correction after its draft": fenced(DRAFT) + "No, better:\n" + fenced(SKETCH),
    "a sketch before a remark in code": fenced(SKETCH) + fenced("function setup() {}"),
    "a sketch among its page and style": fenced("<html></html>", "html")
    + fenced(SKETCH)
    + fenced("canvas { border: 0 }", "css"),
    "a sketch that has setup, before a longer helper": fenced(SKETCH)
    + fenced("function petal() { brush.circle(1, 2, 3); }\n" * 9),
    "windows line ends": fenced(SKETCH).replace("\n", "\r\n"),
    "old line ends": fenced(SKETCH).replace("\n", "\r"),
    "a byte-order mark": "\ufeff" + SKETCH,
    "a byte-order mark before a fence": "\ufeff" + fenced(SKETCH),
}

NOTHING = {
    "an empty reply": "",
    "white space": " \n\t\n",
    "a refusal": "I'm sorry, but I can't paint with brush.circle() today.",
    "a page": f"<!DOCTYPE html>\n<html><body><script>\n{SKETCH}\n</script></body></html>",
    "a proxy's error page": "<html><head><title>502 Bad Gateway</title></head></html>",
    "a page in a block": fenced(f"<script>{SKETCH}</script>", "html"),
    "a page in a block without a label": fenced(f"<html><script>{SKETCH}</script></html>", ""),
    "another language": fenced("import turtle\nturtle.circle(30)", "python"),
    "an empty block": fenced(" \n"),
    "an unlabelled block of prose": fenced("a peach hibiscus", ""),
    "an error in JSON": '{"error": {"message": "overloaded"}}',
    "a thought without an end": f"<think>I will write {fenced(SKETCH)}",
}


@pytest.mark.parametrize("reply", FOUND.values(), ids=FOUND.keys())
def test_the_sketch_is_found(reply: str) -> None:
    found = extract(reply)
    assert found is not None
    assert found.strip() == SKETCH


@pytest.mark.parametrize("reply", NOTHING.values(), ids=NOTHING.keys())
def test_no_sketch_is_found(reply: str) -> None:
    assert extract(reply) is None


def test_any_javascript_block_counts_when_it_is_labelled() -> None:
    assert extract(fenced("let x = 1;")) == "let x = 1;"


def test_a_bare_program_keeps_its_first_lines() -> None:
    sketch = f"W = 512;\n\n{SKETCH}\n"
    assert extract(sketch) == sketch


def test_a_bare_sketch_that_stops_in_the_middle_is_kept() -> None:
    sketch = "let petals = 5;\n" + SKETCH[:-10]
    assert extract(sketch) == sketch


def test_a_backtick_inside_the_code_closes_no_fence() -> None:
    body = "const s = `a\n``` not a fence`;\n" + SKETCH
    assert extract(fenced(body)) == body


def test_utf8_is_decoded_and_its_mark_dropped() -> None:
    assert decode("\ufeff// Blüte".encode()) == "// Blüte"


@pytest.mark.parametrize(
    ("data", "offset", "byte"), [(b"ab\xff\xfe", 2, "0xff"), (b"caf\xc3", 3, "0xc3")]
)
def test_other_bytes_are_an_input_error_with_their_offset(
    data: bytes, offset: int, byte: str
) -> None:
    with pytest.raises(InputError, match=f"{byte} at offset {offset}") as raised:
        decode(data)
    assert raised.value.reason is Reason.INVALID_SKETCH
    assert raised.value.remedy == "Save it as UTF-8."
