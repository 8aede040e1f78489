"""What a burst of renders costs in pod-seconds: the operator's scaling against HPA and KEDA.

Simulated on the shipped traces with the default timings of either rival; no cluster is needed. The
last line compares with the cheaper rival on the published set-up's bursts. That rival is also the
later one, and the conditions say by how much. Exits with 1 if our rule tears a render from a pod.

    python bench/scaling.py [--trace published-8]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from watercolour_operator.scaling.simulate import Outcome, compare, load, shipped, table

RIVALS = ("HPA", "KEDA")


def cost(outcome: Outcome) -> float:
    """What it is compared by."""
    return outcome.pod_seconds


def main() -> int:
    """Print the table and the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trace", default="published-8", help="that the last line is about")
    args = parser.parse_args()
    print(table(compare(shipped())))
    found = {one.rule: one for one in compare([args.trace])}
    ours, theirs = found["ours"], min((found[rule] for rule in RIVALS), key=cost)
    print(
        json.dumps(
            {
                "bench": "scaling",
                "ours": ours.pod_seconds,
                "theirs": theirs.pod_seconds,
                "ratio": round(theirs.pod_seconds / ours.pod_seconds, 2),
                "unit": "pod-seconds a burst",
                "n": load(args.trace).bursts,
                "conditions": {
                    "simulated": args.trace,
                    "theirs": theirs.rule,
                    **{rule: asdict(one) for rule, one in found.items()},
                },
            }
        )
    )
    return 1 if ours.busy_kills else 0


if __name__ == "__main__":
    sys.exit(main())
