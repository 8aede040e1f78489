"""The published backend: HPSv3 by the package hpsv3 1.0.0, which has an environment of its own.

Pictures are prepared some at once and while the model works on others; what waits shares one pass.
No file is written. The package's own preparing holds Python's lock for 15 ms a picture, in which
nothing can be sent to the GPU, so the question's tokens are kept and the pixels are arranged by
PyTorch, to the same numbers. The model is the package's own but for one thing:
its vision tower attends within a picture only, which is what the stock code computes as well, by a
mask over all pictures of the batch whose size grows with the square of their number.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import math
import threading
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from watercolour.score import pictures
from watercolour.score.backend import Batching, Observed, Scored, Unscored, logistic, no_marks
from watercolour.score.batching import Batcher

NAME = "hpsv3"
#: Threads that prepare pictures.
PREPARERS = 4
#: Questions kept, by prompt and size of the picture; 10 kB each.
QUESTIONS = 512
#: Pixels that the package scales a picture to, as near as multiples of 28 come.
PIXELS = 256 * 28 * 28


@dataclass(frozen=True)
class Prepared:
    """One picture with its question, as the model takes them.

    Attributes:
        ids, mask: [1, tokens].
        pixels: [patches, 1176], already in the model's type: 2.4 MB.
        grid: [1, 3], patches by time, height and width.
    """

    ids: Tensor
    mask: Tensor
    pixels: Tensor
    grid: Tensor


#: Tokens, their mask, and the patches by time, height and width.
Question = tuple[Tensor, Tensor, Tensor]


class _Preparer:
    """The package's inferencer for one thread, on the processor."""

    def __init__(self, inferencer: Any) -> None:
        self.inferencer = copy.copy(inferencer)
        self.inferencer.processor = copy.deepcopy(inferencer.processor)
        self.inferencer.device = "cpu"

    def resized(self, picture: Image.Image) -> Image.Image:
        """The picture in the size that the package gives it."""
        fetch = importlib.import_module("hpsv3.dataset.utils").fetch_image
        return fetch({"image": picture, "min_pixels": PIXELS, "max_pixels": PIXELS})


class Hpsv3:
    """The package's inferencer, loaded (:mod:`watercolour.score.hpsv3_load`)."""

    name = NAME

    def __init__(self, inferencer: Any, version: str) -> None:
        self._inferencer = inferencer
        self._local = threading.local()
        self._lock = threading.Lock()
        self._questions: dict[tuple[str, tuple[int, int]], Question] = {}
        self.version = version

    def prepare(self, painting: bytes, prompt: str) -> Prepared:
        """What the package makes of a picture and its question; safe in several threads.

        Raises:
            NotAPicture: the bytes are no picture.
        """
        picture = pictures.rgb(painting)
        preparer = self.preparer()
        small = preparer.resized(picture)
        question = self._questions.get((prompt, small.size))
        if question is None:
            batch = preparer.inferencer.prepare_batch([picture], [prompt])
            question = (batch["input_ids"], batch["attention_mask"], batch["image_grid_thw"])
            self._remember((prompt, small.size), question)
        ids, mask, grid = question
        # The model begins with this very cast; here it halves what waits.
        dtype = self._inferencer.model.visual.get_dtype()
        pixels = patches(np.asarray(small), self._inferencer.processor.image_processor, dtype)
        return Prepared(ids, mask, pixels, grid)

    def _remember(self, key: tuple[str, tuple[int, int]], question: Question) -> None:
        with self._lock:
            if len(self._questions) >= QUESTIONS:
                self._questions.clear()
            self._questions[key] = question

    def preparer(self) -> _Preparer:
        """This thread's own: the package's tokenizer cannot serve two threads at a time."""
        found: _Preparer | None = getattr(self._local, "preparer", None)
        if found is None:
            with self._lock:
                found = _Preparer(self._inferencer)
            self._local.preparer = found
        return found

    def means(self, prepared: Sequence[Prepared]) -> list[tuple[float, float]]:
        """Mean and logarithm of the deviation of each picture; all of them are one pass.

        A batch that the device has no memory for is halved.
        """
        try:
            return self._means(prepared)
        except torch.OutOfMemoryError:
            if len(prepared) == 1:
                raise
        # Outside of the handler, so that the failed pass's tensors are free.
        torch.cuda.empty_cache()
        half = len(prepared) // 2
        return self.means(prepared[:half]) + self.means(prepared[half:])

    def _means(self, prepared: Sequence[Prepared]) -> list[tuple[float, float]]:
        inferencer = self._inferencer
        longest = max(one.ids.shape[1] for one in prepared)
        padded = [inferencer._pad_sequence(one.ids, one.mask, longest) for one in prepared]
        batch = {
            "input_ids": torch.cat([ids for ids, _ in padded]),
            "attention_mask": torch.cat([mask for _, mask in padded]),
            "pixel_values": torch.cat([one.pixels for one in prepared]),
            "image_grid_thw": torch.cat([one.grid for one in prepared]),
        }
        with torch.inference_mode():
            logits = inferencer.model(
                return_dict=True, **{k: v.to(inferencer.device) for k, v in batch.items()}
            )["logits"]
            return [(float(mu), float(log_sigma)) for mu, log_sigma in logits.float().tolist()]

    def answer(self, waiting: Sequence[Future[Prepared]]) -> list[Scored | Exception]:
        """The score of each picture, or why it has none; one bad picture harms no other."""
        outcomes = [_outcome(future) for future in waiting]
        good = [o for o in outcomes if isinstance(o, Prepared)]
        values = iter(self.means(good) if good else ())
        return [_scored(*next(values)) if isinstance(o, Prepared) else o for o in outcomes]

    @asynccontextmanager
    async def open(self, batching: Batching, observed: Observed) -> AsyncGenerator[Hpsv3Open]:
        """Begin to work."""
        with ThreadPoolExecutor(PREPARERS, "prepare") as pool:
            async with Batcher(self.answer, batching, observed=observed) as batcher:
                yield Hpsv3Open(self, pool, batcher)
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Hpsv3Open:
    """HPSv3 at work. Scores are remembered by picture and prompt."""

    model: Hpsv3
    pool: ThreadPoolExecutor
    batcher: Batcher[Future[Prepared], Scored]

    @property
    def waiting(self) -> int:
        """Pictures that wait."""
        return self.batcher.waiting

    async def score(self, painting: bytes, prompt: str, marks: Sequence[str]) -> Scored:
        """Quality of a painting for a prompt.

        Raises:
            NotAPicture: the bytes are no picture.
            Busy: too many wait.
            UnknownMarks: marks were asked for.
            Unscored: the model gave no finite number, or failed.
        """
        no_marks(NAME, marks)
        key = hashlib.sha256(prompt.encode() + b"\0" + painting).digest()
        try:
            return await self.batcher.ask(
                key, lambda: self.pool.submit(self.model.prepare, painting, prompt)
            )
        # The device's own errors: out of memory for a single picture, or worse.
        except RuntimeError as error:
            raise Unscored(f"the model failed: {str(error)[:200]}") from error


def _outcome(future: Future[Prepared]) -> Prepared | Exception:
    try:
        return future.result()
    # The boundary of the preparing threads: whatever failed belongs to this picture alone.
    except Exception as error:
        return error


def _scored(mu: float, log_sigma: float) -> Scored | Exception:
    """The package calls its second value sigma; its loss takes it for the logarithm."""
    if not math.isfinite(mu) or not math.isfinite(log_sigma):
        return Unscored(f"the model gave mu={mu}, which is no number")
    return Scored(mu, math.exp(min(log_sigma, 80.0)), logistic(mu))


def patches(picture: NDArray[np.uint8], processor: Any, dtype: torch.dtype) -> Tensor:
    """A picture as the vision tower takes it: [patches, values], in the order of the stock code.

    Args:
        picture: [height, width, 3], both multiples of the merged patch's side.
        processor: the image processor, for its scale, mean, deviation and sizes.
        dtype: of the result; all before is float32.
    """
    side, merge, frames = (
        processor.patch_size,
        processor.merge_size,
        processor.temporal_patch_size,
    )
    pixels = torch.from_numpy(picture.copy()).permute(2, 0, 1).to(torch.float32)
    mean, std = (
        torch.tensor(v)[:, None, None] for v in (processor.image_mean, processor.image_std)
    )
    pixels = ((pixels * processor.rescale_factor - mean) / std).to(dtype)
    channels, height, width = pixels.shape
    down, across = height // side // merge, width // side // merge
    grid = pixels.expand(frames, -1, -1, -1).reshape(
        frames, channels, down, merge, side, across, merge, side
    )
    # Rows and columns of merged patches, then the patches within, then each one's values.
    return grid.permute(2, 5, 3, 6, 1, 0, 4, 7).reshape(
        down * across * merge * merge, channels * frames * side * side
    )


def attend_within_pictures(
    attention: Any, rotate: Any, hidden: Tensor, cu_seqlens: Tensor, rotary_pos_emb: Tensor
) -> Tensor:
    """Attention of the vision tower, by picture: equal to the stock one under its block mask.

    Args:
        attention: the stock module: qkv, proj, num_heads.
        rotate: the stock rotation by position.
        hidden: [patches of all pictures, width].
        cu_seqlens: [pictures + 1], where each picture's patches begin; 0 first.
        rotary_pos_emb: [patches, half of a head's width].
    """
    count = hidden.shape[0]
    q, k, v = attention.qkv(hidden).reshape(count, 3, attention.num_heads, -1).unbind(1)
    q, k = (rotate(x.unsqueeze(0), rotary_pos_emb).squeeze(0) for x in (q, k))
    lengths = cu_seqlens.diff().tolist()
    heads = [x.transpose(0, 1) for x in (q, k, v)]
    if len(set(lengths)) == 1:
        # [heads, patches, width] → [pictures, heads, patches, width]
        together = [x.unflatten(1, (len(lengths), -1)).transpose(0, 1) for x in heads]
        found = functional.scaled_dot_product_attention(*together)
        found = found.transpose(1, 2).reshape(count, -1)
    else:
        parts = zip(*(x.split(lengths, dim=1) for x in heads), strict=True)
        apart = [functional.scaled_dot_product_attention(*part) for part in parts]
        found = torch.cat(apart, dim=1).transpose(0, 1).reshape(count, -1)
    return attention.proj(found)
