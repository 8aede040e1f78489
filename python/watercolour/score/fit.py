"""Fits the heads on a reference pool: `python -m watercolour.score.fit [--pool FOLDER]`.

Run it again whenever the pool, the counterexamples or the features change; the scorer refuses
heads that were fitted for other features. It takes about 20 CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from watercolour import logs
from watercolour.api.errors import WatercolourError
from watercolour.score import examples, features, heads, validate

log = logs.get("watercolour.score.fit")


def fit_folder(pool_folder: Path, counterexamples_folder: Path, threads: int = 2) -> heads.Heads:
    """Heads of a pool, with their provenance and what held-out subjects say of them.

    Raises:
        WatercolourError: a folder cannot be read, or the heads cannot be fitted.
    """
    pool, counter = examples.read(pool_folder), examples.read(counterexamples_folder)
    seen = examples.gather(pool, counter, features.open_backbone(threads))
    provenance = {
        "pool": pool.checksum,
        "counterexamples": counter.checksum,
        "paintings": len(pool.names),
        "subjects": sorted(set(pool.subjects)),
        "spoilt": sorted(set(seen.kinds) - {""}),
        "held_out": validate.held_out_accuracy(seen),
    }
    return replace(heads.fit(seen), provenance=provenance)


def main() -> int:
    """Fit and write the shipped heads."""
    parser = argparse.ArgumentParser(prog="python -m watercolour.score.fit", description=__doc__)
    parser.add_argument("--pool", type=Path, default=examples.BUILTIN, help="folder of the pool")
    parser.add_argument("--out", type=Path, default=heads.SHIPPED, help="file to write")
    args = parser.parse_args()
    logs.setup("score.fit")
    try:
        fitted = fit_folder(args.pool, examples.COUNTEREXAMPLES)
        heads.save(fitted, args.out)
    except WatercolourError as error:
        log.error("%s", error)
        return error.exit_code
    log.info("wrote %s: %s", args.out, json.dumps(fitted.provenance["held_out"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
