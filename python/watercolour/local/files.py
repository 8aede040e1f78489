"""What a person hands to a command and takes from it: read and written with errors that help."""

from __future__ import annotations

import sys
from pathlib import Path

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

#: Bytes that are read of a sketch's file; the gate refuses far shorter ones as too long.
LARGEST_SKETCH = 16 * 2**20


def read_sketch(path: Path) -> str:
    """The text of a file, or of standard input when it is called ``-``.

    Raises:
        InputError: it cannot be read, is no UTF-8 or is too large (InvalidInput).
    """
    source = "standard input" if str(path) == "-" else str(path)

    def refuse(fault: str, remedy: str) -> InputError:
        return InputError(
            Reason.INVALID_INPUT, f"{source}: {fault}.", remedy=remedy, field="FILE", value=source
        )

    try:
        if str(path) == "-":
            raw = sys.stdin.buffer.read(LARGEST_SKETCH + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(LARGEST_SKETCH + 1)
    except OSError as error:
        raise refuse(
            f"cannot be read ({error.strerror})", "Name a readable file, or - for standard input."
        ) from error
    if len(raw) > LARGEST_SKETCH:
        raise refuse(f"larger than {LARGEST_SKETCH >> 20} MB", "Name a sketch in JavaScript.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise refuse(
            f"not valid UTF-8 (byte {raw[error.start]:#04x} in line {line})",
            "Save the sketch as UTF-8.",
        ) from error


def read_key(path: Path | None) -> str | None:
    """The bearer token in a file; None without a file.

    Raises:
        InputError: it cannot be read or is empty (InvalidInput). The token is never shown.
    """
    if path is None:
        return None
    try:
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        key, cause = "", type(error).__name__
    else:
        cause = "it is empty"
    if not key:
        raise InputError(
            Reason.INVALID_INPUT,
            f"{path}: no key can be read from it ({cause}).",
            remedy="Name a file that holds the bearer token and nothing else.",
            field="key-file",
            value=str(path),
        )
    return key


def read_painting(path: Path) -> bytes:
    """The bytes of a picture's file.

    Raises:
        InputError: it cannot be read (InvalidInput).
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise not_a_painting(path, f"cannot be read ({error.strerror})") from error


def not_a_painting(path: Path, fault: str) -> InputError:
    """The error for a file that holds no picture."""
    return InputError(
        Reason.INVALID_INPUT,
        f"{path}: {fault}.",
        remedy="Name a PNG file.",
        field="PNG",
        value=str(path),
    )


def write_output(path: Path, content: bytes) -> None:
    """Write what a command was asked for; missing folders are made.

    Raises:
        InputError: it cannot be written (InvalidInput).
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise InputError(
            Reason.INVALID_INPUT,
            f"{path}: cannot be written ({error.strerror}).",
            remedy="Name a file in a folder that this user may write to.",
            field="out",
            value=str(path),
        ) from error
