"""Fits the heads on a reference pool: `python -m watercolour.score.fit [--pool FOLDER]`.

Run it again whenever the pool or the features change; the scorer refuses heads that were fitted
for other features.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from watercolour import logs
from watercolour.api.errors import WatercolourError
from watercolour.score import heads, paintings, validate
from watercolour.score.features import Features
from watercolour.score.paintings import Paintings

log = logs.get("watercolour.score.fit")


def fit_pool(pool: Paintings, found: list[Features]) -> heads.Heads:
    """Heads of a pool, with their provenance and what held-out subjects say of them."""
    fitted = heads.fit(found, pool.tiers, pool.subjects)
    figures = validate.held_out_accuracy(found, pool.tiers, pool.subjects)
    return replace(
        fitted,
        provenance={
            "pool": pool.checksum,
            "paintings": len(pool.names),
            "subjects": sorted(set(pool.subjects)),
            "held_out": figures,
        },
    )


def main() -> int:
    """Fit and write the shipped heads."""
    parser = argparse.ArgumentParser(prog="python -m watercolour.score.fit", description=__doc__)
    parser.add_argument("--pool", type=Path, default=paintings.BUILTIN, help="folder of the pool")
    parser.add_argument("--out", type=Path, default=heads.SHIPPED, help="file to write")
    args = parser.parse_args()
    logs.setup("score.fit")
    try:
        pool = paintings.read(args.pool)
        fitted = fit_pool(pool, paintings.embed(pool))
        heads.save(fitted, args.out)
    except WatercolourError as error:
        log.error("%s", error)
        return error.exit_code
    log.info("wrote %s: %s", args.out, json.dumps(fitted.provenance))
    return 0


if __name__ == "__main__":
    sys.exit(main())
