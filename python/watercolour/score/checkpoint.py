"""What a checkpoint holds, by its header alone: names, shapes and types of its tensors.

A safetensors file begins with the length of a JSON header (8 bytes, little-endian) and the header
(https://huggingface.co/docs/safetensors). So a checkpoint of another model is refused in
milliseconds, before 17 GB are read. Pickled checkpoints are refused: reading one runs its code.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

#: Longest header that is read, in bytes; HPSv3's has 90 kB.
MAX_HEADER = 2**25

Shapes = Mapping[str, tuple[int, ...]]


def refused(path: str, why: str, remedy: str) -> InputError:
    """The error for a checkpoint that cannot be used."""
    return InputError(
        Reason.INVALID_CHECKPOINT,
        f"--checkpoint={path}: {why}.",
        remedy=remedy,
        field="checkpoint",
        value=path,
    )


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor of a safetensors file, by name.

    Raises:
        InputError: there is no such file, it is no safetensors file, or it is cut off
            (InvalidCheckpoint).
    """
    whole = "Copy HPSv3.safetensors of the model MizzenAI/HPSv3 anew."
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(size, MAX_HEADER):
                kind = "it is no safetensors file"
                raise refused(str(path), kind, "Name a .safetensors file; a pickle is not read.")
            header: dict[str, Any] = json.loads(file.read(length))
        found = {name: about for name, about in header.items() if name != "__metadata__"}
        end = max((int(about["data_offsets"][1]) for about in found.values()), default=0)
        if size < 8 + length + end:
            why = f"it is cut off: {size:,} bytes of {8 + length + end:,}"
            raise refused(str(path), why, whole)
        return {name: tuple(map(int, about["shape"])) for name, about in found.items()}
    except OSError as error:
        raise refused(str(path), f"it cannot be read ({error.strerror})", whole) from error
    except (struct.error, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        why = "it is no safetensors file"
        raise refused(str(path), why, "Name a .safetensors file; a pickle is not read.") from error


def compare(path: Path, found: Shapes, expected: Shapes) -> None:
    """That a checkpoint holds exactly the tensors that the model has.

    Raises:
        InputError: it does not; the message says what was found and what was expected
            (InvalidCheckpoint).
    """
    missing = [name for name in expected if name not in found]
    strange = [name for name in found if name not in expected]
    differ = [n for n, shape in expected.items() if n in found and found[n] != shape]
    if not missing and not strange and not differ:
        return
    notes = [f"found {_model(found)}, expected {_model(expected)}"]
    if missing:
        notes.append(f"{len(missing)} tensors are missing, such as {missing[0]}")
    if strange:
        notes.append(f"{len(strange)} are not HPSv3's, such as {strange[0]}")
    if differ:
        first = differ[0]
        theirs, ours = (f"{list(s[first])}" for s in (found, expected))
        notes.append(f"{len(differ)} have another shape, such as {first}: {theirs}, not {ours}")
    raise refused(
        str(path),
        "it is of another architecture: " + "; ".join(notes),
        "Name HPSv3.safetensors of the model MizzenAI/HPSv3, and with --base the Qwen2-VL that it "
        "was made from.",
    )


def _model(tensors: Shapes) -> str:
    """A model in words, as far as its tensors tell."""
    layers = {name.split("layers.")[1].split(".")[0] for name in tensors if "layers." in name}
    parts = [f"{len(tensors)} tensors", f"{len(layers)} layers"]
    for tail, what in (("embed_tokens.weight", "vocabulary × width"), ("rm_head.0.weight", "head")):
        shape = next((s for name, s in tensors.items() if name.endswith(tail)), None)
        parts.append(f"{what} {'×'.join(map(str, shape))}" if shape else f"no {what}")
    sees = any(name.startswith("visual.") or ".visual." in name for name in tensors)
    parts.append("a vision tower" if sees else "no vision tower")
    return ", ".join(parts)
