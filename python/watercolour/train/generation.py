"""The generation engine that a specification asks for."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from watercolour import logs
from watercolour.api.spec import RunSpec
from watercolour.api.trainer import decoding
from watercolour.train import engines, logit_bias, served, settings
from watercolour.train import policy as policies
from watercolour.train.ranks import Ranks

log = logs.get(__name__)


def engine_of(
    spec: RunSpec,
    policy: policies.Policy,
    cache: str | None,
    out: Path,
    ranks: Ranks,
    model: nn.Module,
) -> engines.Engine:
    """Build it and name it in the log.

    Args:
        spec: the run's.
        policy: whose tokenizer and ends count.
        cache: transformers' kind of key-value cache, where that engine generates.
        out: the run's folder, where a server is handed its adapters.
        ranks: those that share the training.
        model: the model with its adapter.

    Raises:
        InputError: the engine does not fit the model (InvalidSpec).
    """
    drawn = decoding(spec.trainer.sampling, builtin=settings.is_builtin(spec))
    bias = logit_bias.of_tokens(policy.tokenizer, spec.trainer.sampling.logit_bias)
    drawn = drawn._replace(bias=bias)
    pad = policy.tokenizer.pad_token_id
    vllm = spec.trainer.vllm
    server = vllm and served.Server(vllm, out, model, drawn, policy.ends, ranks.rank)
    name, engine = engines.build(
        spec.trainer.engine,
        model,
        drawn,
        policy.ends,
        pad=pad,
        cache=cache,
        server=(lambda: server.generate) if server else None,
    )
    log.info("generation engine: %s", name)
    return engine
