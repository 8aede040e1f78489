"""How far the heads can be trusted: `python -m watercolour.score.validate [--json]`.

Pairwise accuracy and calibration on a subject that the fit never saw, for every subject in turn;
whether both heads notice that a good painting was spoilt, in twenty ways; the rank correlation of
the two heads on probes (paintings of the supervised corpus); and how the probes that try to cheat
rank against okay paintings.
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
from watercolour.score import degrade, examples, features, heads
from watercolour.score.examples import Examples, Paintings
from watercolour.score.features import Backbone, Features
from watercolour.score.heads import Heads
from watercolour.score.linear import Array

log = logs.get("watercolour.score.validate")

PROBES = Path(__file__).parent / "data" / "probes"

#: What the shipped heads must reach.
LEAST_LOVE_MEH = 0.95
LEAST_OKAY_MEH = 0.85
MOST_CORRELATION = 0.95

#: Ways of spoiling, of :data:`degrade.ALL`, at which the heads must fall.
LEAST_NOTICED = 19
#: Edges of the calibration curve's bins: how sure a head is of its winner.
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

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


def calibration(seen: Examples) -> dict[str, Any]:
    """How often the winner that a head names is right, by how sure it is.

    Over all pairs of different tiers within a subject that the fit never saw. A head is sure by
    1 / (1 + exp(-difference of utilities)).

    Returns:
        By head: ``bins`` of (mean sureness, share right, pairs), and ``error``, the mean distance
        of the two, weighted by pairs.
    """
    ranks, names = seen.ranks[seen.own], seen.subjects[seen.own]
    report: dict[str, Any] = {}
    for head, u in zip(("quality", "judge"), heads.held_out(seen), strict=True):
        high, low = np.nonzero((ranks[:, None] > ranks[None, :]) & (names[:, None] == names))
        lead = 1 / (1 + np.exp(-np.clip(u[high] - u[low], -50, 50)))
        report[head] = curve(np.maximum(lead, 1 - lead), lead > 0.5)
    return report


def curve(sure: Array, right: NDArray[np.bool_]) -> dict[str, Any]:
    """A calibration curve and its error; empty bins are left out."""
    place = np.clip(np.digitize(sure, BINS) - 1, 0, len(BINS) - 2)
    bins = [
        (
            round(float(sure[place == n].mean()), 4),
            round(float(right[place == n].mean()), 4),
            int((place == n).sum()),
        )
        for n in range(len(BINS) - 1)
        if (place == n).any()
    ]
    error = sum(abs(said - was) * pairs for said, was, pairs in bins) / max(1, len(sure))
    return {"bins": bins, "error": round(error, 4)}


def spoilt(fitted: Heads, seen: Examples, pool: Paintings, backbone: Backbone) -> dict[str, Any]:
    """How far both heads fall when good paintings are spoilt, by the way of spoiling.

    The paintings are others than those that taught the judge. ``judge_untaught`` is what a judge
    says of a way of spoiling that it was never taught.

    Returns:
        By way: mean change of quality in mu and of the judges in logits, and the share of
        paintings that fall.
    """
    _, tested = examples.good(pool)
    whole = features.embed(backbone, [features.decode(pool.pictures[n]) for n in tested])
    report: dict[str, Any] = {}
    for kind in degrade.ALL:
        ruins = [features.decode(degrade.spoil(pool.pictures[n], kind)) for n in tested]
        before, after = examples.stack(whole), examples.stack(features.embed(backbone, ruins))
        untaught = heads.fit_judge(seen, seen.kinds != kind)
        changes = {
            "quality": fitted.mu(after[0])[0] - fitted.mu(before[0])[0],
            "judge": fitted.judge.utility(after[1]) - fitted.judge.utility(before[1]),
            "judge_untaught": untaught.utility(after[1]) - untaught.utility(before[1]),
        }
        report[kind] = {
            head: {"change": round(float(c.mean()), 3), "falls": round(float((c < 0).mean()), 3)}
            for head, c in changes.items()
        }
    return report


def noticed(found: dict[str, Any], head: str) -> int:
    """Ways of spoiling at which a head falls: in the mean, and for more paintings than not."""
    return sum(one[head]["change"] < 0 and one[head]["falls"] > 0.5 for one in found.values())


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
    ruined = spoilt(fitted, seen, pool, backbone)
    counts = {head: noticed(ruined, head) for head in ("quality", "judge", "judge_untaught")}
    probed = probe_report(fitted, probes, features.embed(backbone, examples.decode(probes)))
    passed = min(counts.values()) >= LEAST_NOTICED
    passed &= probed["spearman"] <= MOST_CORRELATION and all(
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
        "calibration": calibration(seen),
        "spoilt": ruined,
        "noticed": counts,
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
    lines.append("how often the winner named is right, by how sure the head is of it")
    for head, curve_ in found["calibration"].items():
        bins = "  ".join(f"{said:.2f}: {was:.2f} ({n})" for said, was, n in curve_["bins"])
        lines.append(f"  {head:8} {bins}  error {curve_['error']:.3f}")
    lines.append("good paintings spoilt: mean change, and share that falls")
    lines.append(f"  {'':18}{'quality, mu':>16}{'judge, logits':>16}{'judge untaught':>16}")
    for kind, one in found["spoilt"].items():
        cells = "".join(f"{v['change']:+10.2f} {v['falls']:4.0%} " for v in one.values())
        lines.append(f"  {kind.replace('_', ' '):18}{cells.rstrip()}")
    counted = "".join(f"{n:>10} of {len(found['spoilt'])}" for n in found["noticed"].values())
    lines.append(f"  {'noticed':18}{counted}")
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
