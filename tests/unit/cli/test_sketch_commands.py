"""`watercolour gate` and `watercolour score`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import Call

from watercolour.local import files
from watercolour.reward import pool as pools

SKETCH = """function setup() { createCanvas(192, 192, WEBGL); noLoop(); }
function draw() { background("#fff"); brush.fill("#a33", 160); brush.circle(0, 0, 40); }
"""


def test_a_good_sketch_is_admitted(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(SKETCH)
    assert call("gate", tmp_path / "a.js").status == 0
    got = call("gate", tmp_path / "a.js", "--json")
    assert (got.status, got.json) == (0, {"admitted": True, "violations": []})


def test_a_chat_reply_on_standard_input_is_admitted(call: Call) -> None:
    assert call("gate", "-", stdin=f"Here it is:\n```js\n{SKETCH}```".encode()).status == 0


def test_a_refused_sketch_exits_with_1_and_names_code_and_place(call: Call) -> None:
    bad = SKETCH.replace("brush.circle", "brush.splash").encode()
    got = call("gate", "-", stdin=bad)
    assert got.status == 1
    assert got.out == ""
    assert "unknown_brush_method  line 2, column " in got.err
    found = call("gate", "-", "--json", stdin=bad).json
    assert found["admitted"] is False
    codes = [violation["code"] for violation in found["violations"]]
    assert "unknown_brush_method" in codes
    assert set(found["violations"][0]) == {"code", "line", "column", "message"}


def test_the_ten_methods_are_stricter_than_all(call: Call) -> None:
    wash = SKETCH.replace("brush.circle", "brush.wash('#abc', 99); brush.circle").encode()
    assert call("gate", "-", stdin=wash).status == 0
    assert call("gate", "-", "--allow", "ten", stdin=wash).status == 1
    assert call("gate", "-", "--allow", "fill,circle,wash", stdin=wash).status == 0


def test_an_html_reply_is_no_sketch(call: Call) -> None:
    got = call("gate", "-", "--json", stdin=b"<!doctype html><html><p>Sorry</p></html>")
    assert got.status == 1
    assert got.json["violations"][0]["code"] == "no_sketch_in_response"


def test_a_2_mb_sketch_is_too_long(call: Call) -> None:
    long = SKETCH.encode() + b"// " + b"petal " * 350_000
    got = call("gate", "-", "--json", stdin=long)
    assert got.status == 1
    assert got.json["violations"][0]["code"] == "too_long"


def test_a_monstrous_file_is_not_even_read_whole(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST_SKETCH", 1000)
    got = call("gate", "-", stdin=b"a" * 1001)
    assert got.status == 1
    assert "larger than" in got.err


def test_invalid_utf_8_is_told_with_byte_and_line(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_bytes(b"let a = 1;\nlet b = '\xff';\n")
    got = call("gate", tmp_path / "a.js", "--json")
    assert got.status == 1
    assert got.json["error"]["reason"] == "InvalidInput"
    assert got.json["error"]["field"] == "FILE"
    assert "byte 0xff in line 2" in got.err
    assert "UTF-8" in got.json["error"]["remedy"]


def test_a_text_file_is_no_painting(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("not a picture")
    got = call("score", tmp_path / "a.png", "--json")
    assert got.status == 1
    assert got.json["error"]["field"] == "PNG"
    assert "a.png" in got.err


def test_paintings_are_scored_in_the_order_given(call: Call) -> None:
    folder = pools.locate("builtin:flowers") / "paintings"
    chosen = sorted(folder.glob("*_hibiscus_01.*"))[:3]
    got = call("score", *chosen, "--json").json
    assert [row["painting"] for row in got["scores"]] == [str(path) for path in chosen]
    assert all(0 < row["score"] < 1 for row in got["scores"])


# report
