"""What stands between `helm uninstall` and the runs: without an operator nobody gives GPUs back.

``python -m watercolour_operator.uninstall --runs Refuse`` fails while runs hold pods, and names
them. ``--runs Suspend`` sets their spec.suspend, waits until each has written its checkpoint and
holds no pod, and fails after ``--timeout`` seconds. Both leave every file and every run in place.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from watercolour.api.status import Phase
from watercolour_operator.cluster.api import MERGE, Api, connect
from watercolour_operator.cluster.errors import ApiError
from watercolour_operator.cluster.kinds import RUN

#: Phases in which a run holds nothing.
AT_REST = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.SUSPENDED})
#: Seconds between two looks at runs that are to suspend.
LOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Active:
    """A run that may hold pods."""

    namespace: str
    name: str
    phase: str
    suspend: bool


def active(runs: Iterable[dict[str, Any]]) -> tuple[Active, ...]:
    """The runs that may hold pods: of those whose phase is unknown, all."""
    found: list[Active] = []
    for run in runs:
        phase = str((run.get("status") or {}).get("phase") or Phase.PENDING)
        if phase not in AT_REST:
            meta = run["metadata"]
            suspend = bool((run.get("spec") or {}).get("suspend"))
            found.append(Active(meta["namespace"], meta["name"], phase, suspend))
    return tuple(found)


def refusal(found: Sequence[Active]) -> str:
    """Why the operator stays, and how to let it go."""
    lines = [f"  {run.namespace}/{run.name}  {run.phase}" for run in found]
    many = "1 run holds" if len(found) == 1 else f"{len(found)} runs hold"
    return "\n".join(
        [
            f"{many} pods, and without the operator nobody would give their GPUs back:",
            *lines,
            "Suspend each one, which keeps its files and its place:",
            *(f"  {command(run)}" for run in found[:3]),
            *(["  …"] if len(found) > 3 else []),
            "or let the release do it: helm upgrade --reuse-values --set uninstall.runs=Suspend. "
            "Then uninstall again. `helm uninstall --no-hooks` leaves the runs to themselves.",
        ]
    )


def command(run: Active) -> str:
    """The command that suspends a run."""
    return (
        f"kubectl -n {run.namespace} patch wcr {run.name} --type=merge "
        """-p '{"spec":{"suspend":true}}'"""
    )


async def runs(api: Api, namespaces: Sequence[str]) -> list[dict[str, Any]]:
    """Every run of the namespaces, of all if none is named; none where the definition is gone."""
    found: list[dict[str, Any]] = []
    for namespace in namespaces or [None]:
        query = {"limit": "500"}
        while True:
            try:
                page = await api.page(RUN, namespace, query)
            except ApiError as error:
                if error.status == 404:
                    return []
                raise
            found += page["items"]
            following = page["metadata"].get("continue")
            if not following:
                break
            query["continue"] = following
    return found


async def suspend(api: Api, namespaces: Sequence[str], timeout: float) -> tuple[Active, ...]:
    """Suspend all active runs; returns those that still hold pods after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        left = active(await runs(api, namespaces))
        for run in left:
            if not run.suspend:
                body = {"spec": {"suspend": True}}
                await api.write("patch", RUN, run.namespace, run.name, body=body, content=MERGE)
                sys.stderr.write(f"watercolour: {run.namespace}/{run.name}: suspending\n")
        if not left or time.monotonic() > deadline:
            return left
        await asyncio.sleep(LOOK_SECONDS)


async def decide(args: argparse.Namespace) -> int:
    """Exit status of the hook: 0 lets the operator go."""
    async with connect(args.kubeconfig) as api:
        if args.runs == "Suspend":
            left = await suspend(api, args.namespace, args.timeout)
            if left:
                sys.stderr.write(f"After {args.timeout:g} s still: {refusal(left)}\n")
            return 1 if left else 0
        left = active(await runs(api, args.namespace))
        if left:
            sys.stderr.write(refusal(left) + "\n")
        return 1 if left else 0


def main(argv: list[str] | None = None) -> int:
    """Look at the runs and decide; 3 when the API server does not answer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", choices=["Refuse", "Suspend"], required=True)
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds to wait for Suspend")
    parser.add_argument("--namespace", action="append", default=[], help="as often as needed")
    parser.add_argument("--kubeconfig", help="from outside the cluster")
    args = parser.parse_args(argv)
    try:
        return asyncio.run(decide(args))
    except ApiError as error:
        sys.stderr.write(f"watercolour: {error}\n")
        return 3


if __name__ == "__main__":
    sys.exit(main())
