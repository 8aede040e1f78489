"""How far the heads can be trusted: `python -m watercolour.score.validate [--json]`.

Pairwise accuracy on a subject that the fit never saw, for every subject in turn; the rank
correlation of the two heads on probes (paintings of the supervised corpus); and how the probes
that try to cheat rank against okay paintings.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watercolour import logs
from watercolour.api.errors import WatercolourError
from watercolour.score import examples, features, heads
from watercolour.score.examples import Examples, Paintings
from watercolour.score.features import Features
from watercolour.score.heads import Heads
from watercolour.score.linear import Array

log = logs.get("watercolour.score.validate")

PROBES = Path(__file__).parent / "data" / "probes"

#: What the shipped heads must reach.
LEAST_LOVE_MEH = 0.95
LEAST_OKAY_MEH = 0.85
MOST_CORRELATION = 0.95

_KINDS = (("love", "meh"), ("okay", "meh"), ("love", "okay"))


def accuracy(better: Array, worse: Array) -> float:
    """Share of pairs in which the better painting has the higher utility; a tie is a half."""
    above = better[:, None] - worse[None, :]
    return float((above > 0).mean() + (above == 0).mean() / 2)


def held_out_accuracy(seen: Examples) -> dict[str, Any]:
    """Pairwise accuracy of both heads by kind of pair: mean over held-out subjects, and each.

    A subject that lacks a tier is left out of it.
    """
    ranks, names = seen.ranks[seen.own], seen.subjects[seen.own]
    whole = [s for s in np.unique(names) if len(set(ranks[names == s])) == len(examples.TIER_MU)]
    subjects = [str(s) for s in whole]
    report: dict[str, Any] = {}
    for head, u in zip(("quality", "judge"), heads.held_out(seen), strict=True):
        report[head] = {}
        for better, worse in _KINDS:
            high, low = (ranks == r for r in examples.rank([better, worse]))
            by_subject = {
                s: accuracy(u[high & (names == s)], u[low & (names == s)]) for s in subjects
            }
            report[head][f"{better}_{worse}"] = {
                "mean": round(float(np.mean(list(by_subject.values()))), 4),
                "by_subject": {s: round(a, 4) for s, a in by_subject.items()},
            }
    return report


def spearman(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Rank correlation; ties get their mean rank."""
    ra, rb = (_ranks(x) for x in (a, b))
    return float(np.corrcoef(ra, rb)[0, 1])


def _ranks(x: NDArray[Any]) -> Array:
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def probe_report(fitted: Heads, probes: Paintings, found: list[Features]) -> dict[str, Any]:
    """Mean mu and mean judge utility of the probes by tier, and the heads' correlation."""
    quality, judge = examples.stack(found)
    mu, _ = fitted.mu(quality)
    u = fitted.judge.utility(judge)
    tiers = np.array(probes.tiers)
    return {
        "probes": len(found),
        "spearman": round(spearman(mu, u), 4),
        "by_tier": {
            tier: {
                "paintings": int((tiers == tier).sum()),
                "mu": round(float(mu[tiers == tier].mean()), 3),
                "judge": round(float(u[tiers == tier].mean()), 3),
            }
            for tier in sorted(set(probes.tiers))
        },
    }


def report(pool_folder: Path, probes_folder: Path) -> dict[str, Any]:
    """Everything, with ``passed``.

    Raises:
        WatercolourError: a folder cannot be read, or the heads cannot be fitted or loaded.
    """
    fitted, backbone = heads.load(), features.open_backbone(threads=2)
    pool, probes = examples.read(pool_folder), examples.read(probes_folder)
    seen = examples.gather(pool, examples.read(examples.COUNTEREXAMPLES), backbone)
    accuracies = held_out_accuracy(seen)
    probed = probe_report(fitted, probes, features.embed(backbone, examples.decode(probes)))
    passed = probed["spearman"] <= MOST_CORRELATION and all(
        accuracies[head]["love_meh"]["mean"] >= LEAST_LOVE_MEH
        and accuracies[head]["okay_meh"]["mean"] >= LEAST_OKAY_MEH
        for head in ("quality", "judge")
    )
    return {
        "passed": passed,
        "pool": pool.checksum,
        "fitted_on_this_pool": fitted.provenance["pool"] == pool.checksum,
        "paintings": len(pool.names),
        "held_out": accuracies,
        **probed,
    }


def table(found: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{found['paintings']} paintings of the pool, each subject held out in turn"]
    for head in ("quality", "judge"):
        lines += [
            f"  {head:8} {kind.replace('_', ' over '):15} {values['mean']:.3f}"
            for kind, values in found["held_out"][head].items()
        ]
    lines.append(f"{found['probes']} probes: rank correlation of the heads {found['spearman']:.3f}")
    lines += [
        f"  {tier:12} {v['paintings']:4} paintings  mu {v['mu']:+6.2f}  judge {v['judge']:+6.2f}"
        for tier, v in found["by_tier"].items()
    ]
    lines.append("passed" if found["passed"] else "NOT passed")
    return "\n".join(lines)


def main() -> int:
    """Print the report; exit 1 when a figure misses its threshold."""
    parser = argparse.ArgumentParser(prog="python -m watercolour.score.validate")
    parser.add_argument("--pool", type=Path, default=examples.BUILTIN, help="folder of the pool")
    parser.add_argument("--probes", type=Path, default=PROBES, help="folder of the probes")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    args = parser.parse_args()
    logs.setup("score.validate")
    try:
        found = report(args.pool, args.probes)
    except WatercolourError as error:
        log.error("%s", error)
        return error.exit_code
    print(json.dumps(found) if args.json else table(found))  # noqa: T201
    return 0 if found["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
