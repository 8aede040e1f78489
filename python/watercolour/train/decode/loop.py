"""Rows through the step: capture, polling, retiring.

On a GPU the whole step, sampling included, is one CUDA graph a batch size. Ended rows are seen
every few steps; when a smaller batch holds the rest, its graph goes on over the same slots and
nothing is moved or compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from watercolour.api.trainer import Decoding
from watercolour.train.decode import state as states
from watercolour.train.decode import weights as copies
from watercolour.train.decode.state import State
from watercolour.train.decode.step import forward, ops_for
from watercolour.train.decode.weights import Weights
from watercolour.train.sampling import OnRow, Row, Stop, choose, uniforms

#: Steps between two looks at which rows have ended: a look stalls the GPU for some 30 µs.
LOOK_EVERY = 8
#: Steps run before a capture, so that kernels are compiled and libraries have their workspaces.
WARM_UP = 2
#: Cache positions are allocated in blocks, so that prompts of about equal length share graphs.
POSITIONS = 256


@dataclass(frozen=True)
class Tape:
    """What the steps read and write besides the caches; a slot a row, and one for padding."""

    newest: Tensor
    """(slots,) the token to be read next."""
    count: Tensor
    """(slots,) tokens drawn so far."""
    chance: Tensor
    """(slots, limit) uniform numbers."""
    tokens: Tensor
    """(slots, limit)"""
    logs: Tensor
    """(slots, limit) float32"""
    ended: Tensor
    """(slots,)"""
    ends: Tensor
    """(end tokens,)"""


def batch_sizes(rows: int) -> tuple[int, ...]:
    """Sizes that have a graph, falling: each about three quarters of the one before."""
    sizes = [rows]
    while sizes[-1] > 1:
        sizes.append(max(1, min(sizes[-1] - 1, sizes[-1] * 3 // 4)))
    return tuple(sizes)


class Decoder:
    """Generates with one policy; keeps copies, caches and graphs between calls."""

    def __init__(self, model: nn.Module, sampling: Decoding, ends: frozenset[int]) -> None:
        self.model = model
        self.sampling = sampling
        self.ends = ends
        self.weights: Weights | None = None
        self.state: State | None = None
        self.tape: Tape | None = None
        self._graphs: dict[int, tuple[Tensor, Callable[[], None]]] = {}

    @torch.no_grad()
    def generate(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], on_row: OnRow, stop: Stop
    ) -> list[Row]:
        """Complete every prompt; ``on_row`` hears of a row soon after it has ended."""
        training = self.model.training
        self.model.eval()
        try:
            tape = self._begin(prompts, seeds)
            return self._run(tape, len(prompts), on_row, stop)
        finally:
            self.model.train(training)

    def _begin(self, prompts: Sequence[Sequence[int]], seeds: Sequence[int]) -> Tape:
        limit = self.sampling.max_completion_tokens
        longest = max(map(len, prompts)) + limit
        capacity = -(-longest // POSITIONS) * POSITIONS
        _, state, tape = self._prepared(len(prompts), capacity)
        tape.chance[: len(prompts)] = uniforms(seeds, limit).to(tape.chance)
        tape.count.zero_()
        tape.ended.zero_()
        last = [prompt[-1] for prompt in prompts]
        tape.newest[: len(prompts)] = torch.tensor(last, device=tape.newest.device)
        same: dict[tuple[int, ...], list[int]] = {}
        for slot, prompt in enumerate(prompts):
            same.setdefault(tuple(prompt), []).append(slot)
        for prompt, slots in same.items():
            # The first step reads the last token of the prompt, as every step reads one.
            states.fill(state, self.model, prompt[:-1], slots)
        return tape

    def _prepared(self, rows: int, capacity: int) -> tuple[Weights, State, Tape]:
        weights, state, tape = self.weights, self.state, self.tape
        if (
            weights is not None
            and state is not None
            and tape is not None
            and state.rows >= rows
            and state.capacity >= capacity
        ):
            copies.refresh(weights)
            return weights, state, tape
        self._graphs.clear()
        self.weights = self.state = self.tape = None
        # Before the new ones are made: a copy of the weights takes gigabytes.
        del weights, state, tape
        weights = copies.build(self.model, capacity)
        state = states.allocate(weights, rows, capacity)
        tape = self._tape(rows, weights.embed.device)
        self.weights, self.state, self.tape = weights, state, tape
        return weights, state, tape

    def _tape(self, rows: int, device: torch.device) -> Tape:
        slots, limit = rows + 1, self.sampling.max_completion_tokens
        return Tape(
            newest=torch.zeros(slots, dtype=torch.long, device=device),
            count=torch.zeros(slots, dtype=torch.long, device=device),
            chance=torch.zeros(slots, limit, dtype=torch.float64, device=device),
            tokens=torch.zeros(slots, limit, dtype=torch.long, device=device),
            logs=torch.zeros(slots, limit, device=device),
            ended=torch.zeros(slots, dtype=torch.bool, device=device),
            ends=torch.tensor(sorted(self.ends), device=device),
        )

    def _run(self, tape: Tape, rows: int, on_row: OnRow, stop: Stop) -> list[Row]:
        limit = self.sampling.max_completion_tokens
        done: dict[int, Row] = {}
        live = list(range(rows))
        on_gpu = tape.newest.device.type == "cuda"
        every = LOOK_EVERY if on_gpu else 1
        step = self._step(live, rows)
        for index in range(limit):
            step()
            if (index + 1) % every and index + 1 < limit:
                continue
            stop()
            ended = tape.ended[live].tolist() if live else []
            over = [slot for slot, end in zip(live, ended, strict=True) if end]
            over = live if index + 1 == limit else over
            for slot in over:
                done[slot] = self._row(tape, slot, index + 1)
                on_row(slot, done[slot])
            if over:
                live = [slot for slot in live if slot not in done]
                if not live:
                    break
                step = self._step(live, rows)
        return [done[row] for row in range(rows)]

    def _row(self, tape: Tape, slot: int, length: int) -> Row:
        tokens = tape.tokens[slot, :length].tolist()
        end = next((n for n, token in enumerate(tokens) if token in self.ends), None)
        size = length if end is None else end + 1
        logs = tape.logs[slot, :size].tolist()
        return Row(tuple(tokens[:size]), tuple(logs), truncated=end is None)

    def _step(self, live: Sequence[int], rows: int) -> Callable[[], None]:
        """A step over the live slots: on a GPU the graph of the smallest size that holds them."""
        weights, state, tape = self.weights, self.state, self.tape
        assert weights is not None
        assert state is not None
        assert tape is not None
        device = tape.newest.device
        if device.type != "cuda":
            slots = torch.tensor(list(live), device=device)
            return lambda: self._advance(weights, state, tape, slots)
        size = min(size for size in batch_sizes(rows) if size >= len(live))
        if size not in self._graphs:
            self._graphs[size] = self._captured(weights, state, tape, size)
        slots, replay = self._graphs[size]
        padding = state.rows
        state.lengths[padding], tape.count[padding] = 0, 0
        slots.copy_(torch.tensor([*live, *[padding] * (size - len(live))], device=device))
        return replay

    def _captured(
        self, weights: Weights, state: State, tape: Tape, size: int
    ) -> tuple[Tensor, Callable[[], None]]:
        slots = torch.full((size,), state.rows, device=tape.newest.device)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._advance(weights, state, tape, slots)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._advance(weights, state, tape, slots)
        return slots, graph.replay

    def _advance(self, weights: Weights, state: State, tape: Tape, slots: Tensor) -> None:
        """Read the newest token of each slot and draw the next."""
        logits = forward(weights, state, tape.newest[slots], slots, ops_for(weights))
        at = tape.count[slots]
        tokens, logs = choose(logits, tape.chance[slots, at], self.sampling)
        tape.tokens[slots, at] = tokens
        tape.logs[slots, at] = logs
        tape.ended[slots] |= torch.isin(tokens, tape.ends)
        tape.newest[slots] = tokens
        tape.count[slots] = at + 1
        state.lengths[slots] += 1
