"""The scorer's program: `python -m watercolour.score.service --backend embedded`.

Backends: `embedded` (this machine's cores), `hpsv3` (the published one, on a GPU) and `vlm-mark` (a
vision-language model's mark). docs/scorer.md says how to run it alone.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from watercolour import logs, service
from watercolour.api.errors import InputError, WatercolourError
from watercolour.api.reasons import Reason
from watercolour.score.app import create_app
from watercolour.score.backend import Backend, Batching, Load, Report

log = logs.get("watercolour.score.service")

BACKENDS = ("embedded", "hpsv3", "vlm-mark")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m watercolour.score.service", description=__doc__)
    service.add_arguments(p)
    p.add_argument("--backend", choices=BACKENDS, default="embedded")
    p.add_argument("--max-batch", type=_positive, default=8, help="most pictures of one batch")
    p.add_argument(
        "--window-seconds", type=float, default=0.004, help="how long a batch waits for others"
    )
    p.add_argument(
        "--max-waiting", type=_positive, default=256, help="pictures that may wait before a 429"
    )
    p.add_argument("--threads", type=_positive, default=1, help="embedded: threads of the backbone")
    hpsv3 = p.add_argument_group("hpsv3")
    hpsv3.add_argument("--checkpoint", type=Path, help="HPSv3.safetensors; otherwise downloaded")
    hpsv3.add_argument("--checkpoint-id", default="MizzenAI/HPSv3", help="hub model")
    hpsv3.add_argument("--checkpoint-revision", help="its commit or tag")
    hpsv3.add_argument(
        "--base",
        default="Qwen/Qwen2-VL-7B-Instruct",
        help="folder or hub model with Qwen2-VL's configuration and tokenizer",
    )
    hpsv3.add_argument("--device", default="auto", help="auto, cuda, cuda:N or cpu")
    hpsv3.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    vlm = p.add_argument_group("vlm-mark")
    vlm.add_argument("--endpoint", help="base URL of an OpenAI-compatible API")
    vlm.add_argument("--model", help="the model's name there")
    vlm.add_argument("--key-env", metavar="NAME", help="variable that holds the API key")
    vlm.add_argument("--concurrency", type=_positive, default=16, help="calls under way at once")
    return p


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def loader(args: argparse.Namespace) -> Load:
    """What loads the backend; of the others nothing is imported.

    Raises:
        InputError: an option is missing that the backend needs (InvalidInput).
    """
    if args.backend == "hpsv3":
        return lambda report: _hpsv3(args, report)
    if args.backend == "vlm-mark":
        from watercolour.score import vlm_mark

        for name in ("endpoint", "model"):
            if not getattr(args, name):
                raise _missing(f"--{name}", "the backend vlm-mark asks a model")
        key = os.environ.get(args.key_env, "") if args.key_env else None
        if key == "":
            raise _missing(f"--key-env={args.key_env}", "the variable is empty")
        return vlm_mark.loader(
            args.endpoint, model=args.model, api_key=key, concurrency=args.concurrency
        )
    embedded = importlib.import_module("watercolour.score.embedded")
    return lambda report: embedded.load(args.threads)


def _hpsv3(args: argparse.Namespace, report: Report) -> Backend:
    report("importing PyTorch", 0.0)
    from watercolour.score import hpsv3_load

    source = hpsv3_load.Source(
        checkpoint=args.checkpoint,
        checkpoint_id=args.checkpoint_id,
        revision=args.checkpoint_revision,
        base=args.base,
        device=args.device,
        dtype=args.dtype,
    )
    return hpsv3_load.load(source, report)


def _missing(field: str, why: str) -> InputError:
    remedy = "Name the endpoint with --endpoint URL, the model with --model NAME."
    return InputError(Reason.INVALID_INPUT, f"{field}: {why}.", remedy=remedy, field=field)


def main() -> int:
    """Serve until SIGTERM."""
    args = parser().parse_args()
    logs.setup("scorer")
    try:
        batching = Batching(args.max_batch, args.window_seconds, args.max_waiting)
        service.serve(create_app(loader(args), batching), args)
    except WatercolourError as error:
        log.error("%s: %s", error.reason, error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
