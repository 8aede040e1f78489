"""What a policy writes before it was trained: sketches for the calibration of a pool."""

from __future__ import annotations

from collections.abc import Generator

from watercolour.api.spec import Model, Prompts, RunSpec
from watercolour.api.trainer import decoding
from watercolour.reward.pool_writers import Proposal

#: Replies drawn at once.
BATCH = 8


def replies(model: str, subject: str, seed: int) -> Generator[Proposal]:
    """The policy's replies without end, drawn as a run would draw them.

    Args:
        model: an id or folder, or ``builtin:NAME``.
        subject: what it is asked to paint.
        seed: of the sampling.

    Raises:
        InputError: the policy cannot be loaded (InvalidModel).
    """
    # Imported here: they take seconds, and only this needs them.
    from watercolour.train import asking, engines, policy
    from watercolour.train.sampling import derive_seed

    spec = RunSpec(model=Model(id=model), prompts=Prompts(subjects=(subject,)))
    loaded = policy.load(spec.model, spec.trainer.lora)
    drawn = decoding(spec.trainer.sampling, builtin=model.startswith("builtin:"))
    _, engine = engines.build(
        "auto", loaded.model, drawn, loaded.ends, pad=loaded.tokenizer.pad_token_id
    )
    tokens = asking.tokens_of(spec, loaded, subject)
    number = 0
    while True:
        seeds = [derive_seed(seed, "calibrate", number + n) for n in range(BATCH)]
        rows = engine([tokens] * BATCH, seeds, lambda _row, _told: None, lambda: None)
        for row in rows:
            number += 1
            text = loaded.tokenizer.decode(row.tokens, skip_special_tokens=True)
            yield Proposal(text, 1, {"origin": "model", "generator": model})
