"""The sketch in a chat reply.

The rules, in this order:

1. A byte-order mark is dropped and line ends become line feeds.
2. Thinking aloud (``<think>``, ``<thinking>``, ``<reasoning>``) is skipped; one that never ends
   takes the rest of the reply with it.
3. Fenced blocks (three or more backticks or tildes) are candidates when they are labelled as
   JavaScript, or when they bear no label or an unknown one and read like a sketch. A block
   labelled as something else (HTML, CSS, JSON, a shell …) is none. A fence that never closes
   holds all that follows.
4. Of the candidates, those that define ``setup`` go before those that do not. Of these the last
   one counts that is at least half as long as the longest: a correction wins over its draft, and
   a closing remark with three lines of code does not.
5. A reply without a fence is a bare sketch when it reads like one: the whole of it when it is a
   program, otherwise what remains without the prose before and after. HTML is none.
"""

from __future__ import annotations

import re

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.sketch.parse import is_program

_JAVASCRIPT = frozenset({"js", "javascript", "p5", "p5js", "p5.js", "mjs", "ecmascript", "es6"})
_OTHER_LANGUAGES = frozenset(
    {
        "bash",
        "c",
        "c++",
        "console",
        "cpp",
        "cs",
        "css",
        "diff",
        "glsl",
        "go",
        "html",
        "ini",
        "java",
        "json",
        "jsonc",
        "kotlin",
        "lua",
        "markdown",
        "md",
        "php",
        "plaintext",
        "powershell",
        "py",
        "python",
        "ruby",
        "rust",
        "sh",
        "shell",
        "sql",
        "svg",
        "swift",
        "toml",
        "xml",
        "yaml",
        "yml",
    }
)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^\s`]*)[^`\n]*$")
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(think|thinking|reasoning)>", re.IGNORECASE)
_SETUP = re.compile(r"\bfunction\s+setup\s*\(|\bsetup\s*=[^=]")
_SKETCH = re.compile(
    r"\bfunction\s+(?:setup|draw)\s*\(|\bsetup\s*=[^=]|\bcreateCanvas\s*\(|\bbrush\.\w"
)
_CODE_LINE = re.compile(
    r"(?:async\s+)?function\b[^.]*\(|(?:const|let|var)\s+[\w$\[{].*[=;]|class\s+\w+[^.]*\{|//|/\*"
    r"|['\"]use strict['\"]|(?:setup|draw)\s*=|(?:brush\.)?[a-z]\w*\([^`]*\)\s*;"
)
_PROSE_LINE = re.compile(r"[A-Z*#>\-][^;{}=]*$")
_LONGEST_BARE = 200_000
"""Characters up to which a bare reply is parsed to see whether all of it is a program."""
_HTML = re.compile(r"^\s*<(?:!doctype|html|head|body|script|svg|!--)", re.IGNORECASE | re.MULTILINE)


def decode(data: bytes) -> str:
    """Return a file's text.

    Raises:
        InputError: the bytes are not UTF-8; the message gives the offset of the first wrong one.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wrong = f"0x{data[error.start]:02x}"
        raise InputError(
            Reason.INVALID_SKETCH,
            f"The sketch is not UTF-8 text: byte {wrong} at offset {error.start}.",
            remedy="Save it as UTF-8.",
            field="sketch",
            value=wrong,
        ) from error


def extract(completion: str) -> str | None:
    """Return the sketch in a reply, or None when there is none. Linear in the reply's length."""
    text = completion.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _without_thoughts(text)
    lines = text.split("\n")
    blocks, fenced = _blocks(lines)
    candidates = [body for label, body in blocks if _is_candidate(label, body)]
    if candidates:
        return _choose(candidates)
    return None if fenced else _bare(text, lines)


def _without_thoughts(text: str) -> str:
    kept: list[str] = []
    position = 0
    first_end = _THOUGHT_END.search(text)
    first = _THOUGHT.search(text)
    if first_end and (first is None or first_end.start() < first.start()):
        position = first_end.end()  # The chat template had already opened the thought.
    while start := _THOUGHT.search(text, position):
        kept.append(text[position : start.start()])
        end = _THOUGHT_END.search(text, start.end())
        if end is None:
            return "".join(kept)
        position = end.end()
    kept.append(text[position:])
    return "".join(kept)


def _blocks(lines: list[str]) -> tuple[list[tuple[str, str]], bool]:
    """Return each fenced block's label and body, and whether any fence was seen."""
    blocks: list[tuple[str, str]] = []
    fence, label, start = "", "", 0
    for number, line in enumerate(lines):
        found = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if found is None:
            continue
        mark = found[1]
        if not fence:
            fence, label, start = mark, found[2].lower(), number + 1
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not found[2]:
            blocks.append((label, "\n".join(lines[start:number])))
            fence = ""
    if fence:
        blocks.append((label, "\n".join(lines[start:])))
    return blocks, bool(blocks)


def _is_candidate(label: str, body: str) -> bool:
    if not body.strip() or label in _OTHER_LANGUAGES:
        return False
    if label in _JAVASCRIPT:
        return True
    return _SKETCH.search(body) is not None and _HTML.search(body) is None


def _choose(candidates: list[str]) -> str:
    whole = [body for body in candidates if _SETUP.search(body)] or candidates
    longest = max(len(body) for body in whole)
    return next(body for body in reversed(whole) if 2 * len(body) >= longest)


def _bare(text: str, lines: list[str]) -> str | None:
    if _HTML.search(text) or _SKETCH.search(text) is None:
        return None
    if len(text) <= _LONGEST_BARE and is_program(text):
        return text
    first = next((i for i, line in enumerate(lines) if not _is_prose(line)), len(lines))
    if first < len(lines) and not _CODE_LINE.match(lines[first].strip()):
        first = next((i for i, line in enumerate(lines) if _CODE_LINE.match(line.strip())), -1)
    last = len(lines)
    while last > max(first, 0) and _is_prose(lines[last - 1]):
        last -= 1
    body = "\n".join(lines[first:last]) if first >= 0 else ""
    return body if _SKETCH.search(body) else None


def _is_prose(line: str) -> bool:
    return not line.strip() or _PROSE_LINE.match(line) is not None
