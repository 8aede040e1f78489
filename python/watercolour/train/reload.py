"""That a checkpoint's adapter is the one that was saved: a log-probability is stored beside it.

A load through another model class was seen to drop most of an adapter without a word. Names are
compared as well (:func:`watercolour.train.policy.require_whole`); this compares what it computes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.train.files import write_text

FILE = "reload.json"
#: Tokens of the probe, and how far the mean log-probability of one may lie from the stored one:
#: rounding by type, far below what a lost adapter moves it.
TOKENS = 64
APART = {torch.float32: 1e-3}
APART_ROUNDED = 2e-2


@torch.no_grad()
def mean_log_probability(model: Any, tokens: Sequence[int]) -> float:
    """Of every token but the first, by the model with its adapter."""
    training = model.training
    model.eval()
    try:
        ids = torch.tensor([list(tokens)], device=next(model.parameters()).device)
        logs = model(input_ids=ids, use_cache=False).logits[0, :-1].float().log_softmax(-1)
        return float(logs.gather(1, ids[0, 1:].unsqueeze(1)).mean())
    finally:
        model.train(training)


def probe(model: Any, tokens: Sequence[int]) -> dict[str, Any]:
    """A probe of some tokens, and what the model makes of it; processes that share one all ask."""
    some = list(tokens)[:TOKENS]
    return {"tokens": some, "mean_log_probability": mean_log_probability(model, some)}


def store(folder: Path, found: Mapping[str, Any]) -> None:
    """Write a probe into a checkpoint."""
    write_text(folder / FILE, json.dumps(found))


def require_same(checkpoint: Path, model: Any) -> None:
    """Compare a model with the checkpoint that it was loaded from.

    Raises:
        InputError: it computes something else (ArtifactsDamaged).
    """
    path = checkpoint / FILE
    if not path.exists():
        return
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    now, then = mean_log_probability(model, stored["tokens"]), stored["mean_log_probability"]
    if not abs(now - then) <= APART.get(model.dtype, APART_ROUNDED):
        raise InputError(
            Reason.ARTIFACTS_DAMAGED,
            f"{checkpoint}: the adapter gives a mean log-probability of {now:.4f} where it gave "
            f"{then:.4f} when it was saved.",
            remedy="Put spec.model and spec.trainer.lora back, or delete this checkpoint to go on "
            "from the one before.",
            field="resume",
            value=str(checkpoint),
        )
