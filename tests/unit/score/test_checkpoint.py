"""A checkpoint is judged by its header: what it is, whether it is whole, whose it is."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path

import pytest

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.score import checkpoint

EXPECTED = {
    "visual.blocks.0.proj.weight": (8, 8),
    "model.embed_tokens.weight": (100, 8),
    "model.layers.0.mlp.weight": (8, 8),
    "rm_head.0.weight": (16, 8),
}


def write(path: Path, shapes: dict[str, tuple[int, ...]], *, cut: int = 0) -> Path:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * shape[1]
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end - cut))
    return path


def test_the_model_s_own_checkpoint_passes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", EXPECTED)
    checkpoint.compare(path, checkpoint.shapes(path), EXPECTED)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rm_head.0.weight": None}, "no head.*1 tensors are missing, such as rm_head.0.weight"),
        ({"visual.blocks.0.proj.weight": None}, "no vision tower"),
        ({"model.layers.1.mlp.weight": (8, 8)}, "found 5 tensors, 2 layers.*1 are not HPSv3's"),
        (
            {"model.embed_tokens.weight": (120, 8)},
            r"embed_tokens.weight: \[120, 8\], not \[100, 8\]",
        ),
    ],
)
def test_another_architecture_is_refused_with_what_was_found_and_expected(
    change: dict[str, tuple[int, ...] | None], says: str, tmp_path: Path
) -> None:
    changed = {**EXPECTED, **change}
    path = write(tmp_path / "a.safetensors", {n: s for n, s in changed.items() if s is not None})
    with pytest.raises(InputError, match=says) as caught:
        checkpoint.compare(path, checkpoint.shapes(path), EXPECTED)
    assert caught.value.reason is Reason.INVALID_CHECKPOINT
    assert "expected 4 tensors" in str(caught.value)


def test_a_checkpoint_cut_off_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", EXPECTED, cut=1)
    with pytest.raises(InputError, match="cut off"):
        checkpoint.shapes(path)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 4, pickle.dumps({"model": 1}), struct.pack("<Q", 4) + b"[1]]"]
)
def test_what_is_no_safetensors_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no safetensors file"):
        checkpoint.shapes(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        checkpoint.shapes(tmp_path / "none.safetensors")
