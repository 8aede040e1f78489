"""From the bytes of a painting to the two feature vectors that the heads read.

Quality looks at the whole picture (class tokens), the judge at how its parts are painted
(statistics of patch tokens, no positions). What the one head likes is so no copy of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.score import weights
from watercolour.score.pictures import rgb

#: Side that the backbone takes, in pixels. Equal to graph.SIDE.
SIDE = 154
#: Changes whenever the same painting gives other features.
VERSION = f"{weights.VERSION}+class8-12+patch4-8-mean-std/1"

Pixels = NDArray[np.uint8]
Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Features:
    """What the heads see of one painting.

    Attributes:
        quality: [768], class tokens after blocks 8 and 12.
        judge: [1536], mean and deviation over the patches after blocks 4 and 8.
    """

    quality: Vector
    judge: Vector


def decode(painting: bytes) -> Pixels:
    """RGB pixels [SIDE, SIDE, 3]: transparency on white, resampled (bicubic, antialiased).

    Raises:
        NotAPicture: see :func:`watercolour.score.pictures.rgb`.
    """
    small = rgb(painting).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(small)


class Backbone:
    """The DINOv2 session. Its tokens do not depend on the batch or on the threads, to the bit."""

    def __init__(self, model: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # A waiting thread would spin on a core that the renderer needs.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )

    def features(self, pictures: Sequence[Pixels]) -> list[Features]:
        """Features of each picture, in order; all of them are one batch."""
        outputs = self._session.run(
            ["tokens4", "tokens8", "tokens12"], {"pixels": np.stack(pictures)}
        )
        early, middle, late = (np.asarray(tokens, np.float32) for tokens in outputs)
        quality = np.concatenate([middle[:, 0], late[:, 0]], axis=1)
        patches = [tokens[:, 1:] for tokens in (early, middle)]
        judge = np.concatenate(
            [part for p in patches for part in (p.mean(axis=1), p.std(axis=1))], axis=1
        )
        return [Features(q, j) for q, j in zip(quality, judge, strict=True)]


def open_backbone(threads: int = 1) -> Backbone:
    """The backbone, its weights cut out first where they are missing.

    Raises:
        InfrastructureError: no weights can be had, or they cannot be read.
    """
    path = weights.ensure()
    try:
        return Backbone(path, threads)
    except (RuntimeError, OSError) as error:  # onnxruntime raises subclasses of RuntimeError
        raise InfrastructureError(
            Reason.SCORER_UNAVAILABLE,
            f"the scorer's backbone {path} cannot be loaded: {error}.",
            remedy="Delete that file and run `python -m watercolour.score.weights`.",
        ) from error


def embed(backbone: Backbone, pictures: Sequence[Pixels], batch: int = 8) -> list[Features]:
    """Features of many pictures, a batch at a time."""
    found: list[Features] = []
    for start in range(0, len(pictures), batch):
        found += backbone.features(pictures[start : start + batch])
    return found
