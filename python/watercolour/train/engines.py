"""Generation engines behind one signature: prompts and seeds in, rows out, each row announced.

``transformers`` is plain ``generate``: it serves every model. ``static`` is a decode loop of ours
with caches allocated once: for Qwen3 on the CPU that of :mod:`watercolour.train.static`, otherwise
that of :mod:`watercolour.train.decode`, which on a GPU is one CUDA graph. All sample by
:func:`watercolour.train.sampling.choose` from the same random numbers, so equal logits give
equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.trainer import Decoding
from watercolour.train import static
from watercolour.train.decode import weights
from watercolour.train.decode.loop import Decoder
from watercolour.train.sampling import OnRow, Row, Stop, choose, uniforms

#: Prompts (token ids), one seed a prompt, ``on_row``, ``stop``; the rows in the prompts' order.
#: ``on_row`` hears of a row in the step in which it ends; ``stop`` is called every step.
Engine = Callable[[Sequence[Sequence[int]], Sequence[int], OnRow, Stop], list[Row]]


def build(
    name: str,
    model: nn.Module,
    sampling: Decoding,
    ends: frozenset[int],
    *,
    pad: int,
    cache: str | None = None,
    server: Callable[[], Engine] | None = None,
) -> tuple[str, Engine]:
    """The engine of that name, or the fastest that fits for ``auto``; its name and itself.

    Args:
        name: ``auto``, ``transformers``, ``static`` or ``vllm``.
        model: the policy; its weights are read anew at every call.
        sampling: how tokens are drawn.
        ends: tokens that end a completion.
        pad: the padding token.
        cache: transformers' kind of key-value cache, such as ``static``, which compiles.
        server: makes the engine of a vLLM server.

    Raises:
        InputError: the engine does not fit the model (InvalidSpec).
    """
    if name == "vllm" and server is not None:
        return name, server()
    if name == "auto":
        name = "static" if _fits(model) else "transformers"
    if name == "static":
        if static.supports(model):
            return name, _static(model, sampling, ends)
        if fault := weights.unfit(model):
            raise _unfit(name, fault)
        return name, Decoder(model, sampling, ends).generate
    if name == "transformers":
        _require_cache(model, cache)
        return name, _transformers(model, sampling, ends, pad, cache)
    raise _unfit(name, "this trainer has no such engine")


def _fits(model: nn.Module) -> bool:
    """Whether a loop of ours is the fastest; off the GPU, experts one by one are not."""
    on_gpu = weights.causal_lm(model).device.type == "cuda"
    return static.supports(model) or (on_gpu and not weights.unfit(model))


def _unfit(name: str, why: str) -> InputError:
    return InputError(
        Reason.INVALID_SPEC,
        f"spec.trainer.engine={name}: {why}.",
        remedy="Set it to auto or transformers.",
        field="spec.trainer.engine",
        value=name,
    )


def _require_cache(model: nn.Module, cache: str | None) -> None:
    """Refuse a cache of a fixed size for a model whose class has none: it would be passed over.

    Raises:
        InputError: as said (InvalidSpec).
    """
    policy = weights.causal_lm(model)
    fixed = cache is not None and "static" in cache
    able = getattr(policy, "_can_compile_fullgraph", False)
    if fixed and not (able and policy._supports_default_dynamic_cache()):
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.trainer.grpo.cache_implementation={cache}: {type(policy).__name__} has no "
            "static cache.",
            remedy="Leave it out; generation then lengthens its cache with each token.",
            field="spec.trainer.grpo.cache_implementation",
            value=cache,
        )


def _static(model: nn.Module, sampling: Decoding, ends: frozenset[int]) -> Engine:
    def generate(
        prompts: Sequence[Sequence[int]], seeds: Sequence[int], on_row: OnRow, stop: Stop
    ) -> list[Row]:
        positions = max(map(len, prompts)) + sampling.max_completion_tokens
        weights = static.merged(model, positions)
        return static.generate(weights, prompts, seeds, sampling, ends, on_row, stop)

    return generate


class _Sampler:
    """A logits processor that leaves ``generate`` one token to choose: ours."""

    def __init__(self, chance: Tensor, sampling: Decoding) -> None:
        self.chance = chance
        self.sampling = sampling
        self.logs: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        chance = self.chance[:, len(self.logs)].to(scores.device)
        tokens, logs = choose(scores, chance, self.sampling)
        self.logs.append(logs.cpu())
        forced = torch.full_like(scores, float("-inf"))
        return forced.scatter_(-1, tokens.unsqueeze(-1), 0.0)


class _Announcer:
    """A stopping criterion that never stops a row, but tells of each that has ended."""

    def __init__(
        self, width: int, ends: frozenset[int], sampler: _Sampler, on_row: OnRow, stop: Stop
    ) -> None:
        self.width = width
        self.ends = ends
        self.sampler = sampler
        self.on_row = on_row
        self.stop = stop
        self.done: dict[int, Row] = {}

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        self.stop()
        for row, token in enumerate(input_ids[:, -1].tolist()):
            if row not in self.done and token in self.ends:
                self.finish(input_ids, row, truncated=False)
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    def finish(self, input_ids: Tensor, row: int, *, truncated: bool) -> None:
        tokens = input_ids[row, self.width :].tolist()
        logs = torch.stack([step[row] for step in self.sampler.logs[: len(tokens)]]).tolist()
        self.done[row] = Row(tuple(tokens), tuple(logs), truncated)
        self.on_row(row, self.done[row])


def _transformers(
    model: Any, sampling: Decoding, ends: frozenset[int], pad: int, cache: str | None
) -> Engine:
    settings = GenerationConfig(
        max_new_tokens=sampling.max_completion_tokens,
        do_sample=False,
        eos_token_id=sorted(ends),
        pad_token_id=pad,
        cache_implementation=cache,
    )

    def generate(
        prompts: Sequence[Sequence[int]], seeds: Sequence[int], on_row: OnRow, stop: Stop
    ) -> list[Row]:
        width = max(map(len, prompts))
        tokens = torch.full((len(prompts), width), pad)
        seen = torch.zeros((len(prompts), width), dtype=torch.long)
        for row, prompt in enumerate(prompts):
            tokens[row, width - len(prompt) :] = torch.tensor(prompt)
            seen[row, width - len(prompt) :] = 1
        sampler = _Sampler(uniforms(seeds, sampling.max_completion_tokens), sampling)
        announcer = _Announcer(width, ends, sampler, on_row, stop)
        training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                whole = model.generate(
                    tokens.to(model.device),
                    attention_mask=seen.to(model.device),
                    generation_config=settings,
                    logits_processor=LogitsProcessorList([sampler]),
                    stopping_criteria=StoppingCriteriaList([announcer]),
                )
        finally:
            model.train(training)
        for row in range(len(prompts)):
            if row not in announcer.done:
                announcer.finish(whole, row, truncated=True)
        return [announcer.done[row] for row in range(len(prompts))]

    return generate
