"""Where the cold start's pairs of subject and sketch come from.

A corpus is ``builtin:grammar``, a folder with ``pairs.jsonl``, the folder of an earlier run, whose
best rollouts are distilled, or a dataset of the hub with the columns ``subject`` and ``sketch``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import Sft
from watercolour.sketch import grammar
from watercolour.train import parquet

GRAMMAR = "builtin:grammar"
PAIRS = "pairs.jsonl"


@dataclass(frozen=True)
class Pair:
    """What was asked for, and a sketch that answers it."""

    subject: str
    sketch: str


def load(spec: Sft, seed: int) -> list[Pair]:
    """As many pairs as the specification asks for, or all that there are, in an order by chance.

    Raises:
        InputError: the corpus is not there, is empty or is none (InvalidSpec, ArtifactsDamaged).
    """
    if spec.corpus == GRAMMAR:
        samples = grammar.corpus(spec.examples, seed)
        return [Pair(sample.subject, sample.sketch) for sample in samples]
    folder = Path(spec.corpus)
    if (folder / PAIRS).is_file():
        found = list(_lines(folder / PAIRS))
    elif (folder / "rollouts").is_dir():
        found = best_of(folder)
    elif folder.is_absolute() or spec.corpus.startswith((".", "~")) or spec.corpus.count("/") != 1:
        raise _refused(
            spec.corpus,
            f"no {PAIRS} and no rollouts there",
            "Name a folder that has one of them, builtin:grammar, or owner/name on the hub.",
        )
    else:
        found = _from_hub(spec.corpus)
    if not found:
        raise _refused(spec.corpus, "it holds no pair", "Name a corpus with sketches in it.")
    random.Random(seed).shuffle(found)
    return found[: spec.examples]


def _lines(path: Path) -> Iterable[Pair]:
    try:
        # Not by splitlines, which knows ends of lines that JSON allows within a text.
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(
            str(path), f"cannot be read ({error})", "Make it a readable file in UTF-8."
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _pair(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            raise _refused(
                f"{path}:{number}",
                f"no pair ({type(error).__name__}: {error})",
                'Write {"subject": "a red poppy", "sketch": "function setup() …"}.',
            ) from error


def _pair(row: Mapping[str, Any]) -> Pair:
    subject, sketch = row["subject"], row["sketch"]
    if not isinstance(subject, str) or not isinstance(sketch, str):
        raise TypeError("subject and sketch must be text")
    if not subject.strip() or not sketch.strip():
        raise ValueError("subject and sketch must not be blank")
    return Pair(subject, sketch)


def best_of(run: Path) -> list[Pair]:
    """The best admitted rollout of each group of a run: distillation by best of n.

    Unscored rollouts are passed over; a sketch that was best twice is taken once.

    Raises:
        InputError: a file cannot be read, or holds no rollouts (ArtifactsDamaged).
    """
    best: dict[tuple[int, int], tuple[float, Pair]] = {}
    for file in sorted((run / "rollouts").glob("*.parquet")):
        for row in parquet.read(file):
            reward, sketch = row["reward"], row["sketch"]
            if reward is None or not sketch or not row["gate_passed"]:
                continue
            group = (row["step"], row["group"])
            if group not in best or reward > best[group][0]:
                best[group] = (reward, Pair(row["subject"], sketch))
    return list(dict.fromkeys(pair for _, pair in best.values()))


def _from_hub(name: str) -> list[Pair]:
    from datasets import load_dataset

    try:
        rows: Any = load_dataset(name, split="train")
        return [_pair(row) for row in rows]
    except (OSError, ValueError, TypeError, KeyError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _refused(
            name, first, "Name a dataset with the columns subject and sketch and a split train."
        ) from error


def _refused(value: str, fault: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_SPEC,
        f"spec.sft.corpus={value}: {fault}.",
        remedy=remedy,
        field="spec.sft.corpus",
        value=value,
    )
