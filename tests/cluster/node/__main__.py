"""Whole Kubernetes nodes on this machine: `python -m tests.cluster.node up | lose | run | down`.

With KUBECONFIG set nothing is started: the commands use the cluster that it names.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster.ground import binaries
from tests.cluster.ground.binaries import BinariesMissing
from tests.cluster.node import autoscalers, cluster, host, images, run

EXAMPLE = cluster.ROOT / "examples" / "cluster-tiny.yaml"


def say(text: str) -> None:
    """A line of progress."""
    print(f"cluster: {text}", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Run one command; 3 when the machine cannot do it."""
    parser = argparse.ArgumentParser(prog="cluster", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start the node, or find it running")
    starting.add_argument(
        "--with",
        dest="autoscalers",
        action="append",
        default=[],
        choices=sorted(autoscalers.AUTOSCALERS),
        help="and this autoscaler on it; repeatable",
    )
    starting.add_argument("--second", action="store_true", help="and a second node beside it")
    commands.add_parser("lose", help="lose the second node at once, as without power")
    running = commands.add_parser("run", help="up, install the chart, and see a run to its report")
    running.add_argument("file", nargs="?", type=Path, default=EXAMPLE)
    running.add_argument("--namespace", default=run.RUNS)
    running.add_argument("--set", action="append", default=[], help="a value of the chart")
    running.add_argument("--into", type=Path, default=Path("runs"), help="folder for the report")
    commands.add_parser("down", help="end it and remove what it took; images stay in the cache")
    commands.add_parser("probe", help="write the image of the tests' pods, for a cluster of yours")
    commands.add_parser("status", help="tell whether one runs, and its memory")
    options = parser.parse_args(argv)
    try:
        if options.command == "up":
            found = cluster.up(say)
            if options.second:
                cluster.second(found, say)
            autoscalers.install(found, options.autoscalers, say)
            print(cluster.usage(found))
        elif options.command == "run":
            _run(options)
        elif options.command == "lose":
            first = host.running()
            lost = first is not None and cluster.lose(first)
            say("the second node is lost" if lost else "there is no second node")
        elif options.command == "probe":
            print(images.probe(binaries.provide("probe", say) / "probe"))
        elif options.command == "down":
            say("is down" if host.end() else "was not up")
        else:
            return _status()
    except run.RunFailed as problem:
        say(str(problem))
        return 1
    except (cluster.ClusterMissing, BinariesMissing, images.ImageMissing, RuntimeError) as problem:
        say(str(problem))
        return 3
    return 0


def _run(options: argparse.Namespace) -> None:
    started = time.monotonic()
    found = cluster.up(say)
    if found.place:
        for place in cluster.places(found.place):
            images.bring(place, say)
    run.install(found, say, *(word for each in options.set for word in ("--set", each)))
    run.namespace(found, options.namespace)
    name = run.name(options.file)
    over = run.ended(found, options.namespace, name)
    if over:
        claim = run.get(found, options.namespace, name)["status"]["artifacts"]["claim"]
        say(f"{name} is over ({over}) and is not run again. Give the file another name, or first:")
        say(f"  kubectl -n {options.namespace} delete wcr/{name} pvc/{claim}   # and its files")
    else:
        run.start(found, options.file, options.namespace)
        say(f"applied {options.file} as {name} in {options.namespace}")
    ready = time.monotonic()
    run.follow(found, options.namespace, name, say)
    if not over:
        say(f"succeeded {time.monotonic() - ready:.0f} s after it was applied")
    folder = run.fetch(found, options.namespace, name, options.into)
    say(f"done in {time.monotonic() - started:.0f} s; the cluster goes on until  make cluster-down")
    report = folder / "report.html"
    if not report.exists():
        say("the trainer left no report (its log says why); it is made here")
        command = [sys.executable, "-m", "watercolour.cli", "report", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(report)


def _status() -> int:
    place = host.running()
    if place is None:
        say("none runs here; start one with:  make cluster-up")
        return 1
    names = " and ".join(each.node.name for each in cluster.places(place))
    say(f"{names}, in {place.root}; logs in {place.logs}")
    for name, mib in sorted(cluster.memory(place).items(), key=lambda each: -each[1]):
        print(f"{mib:6d} MiB  {name}")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    sys.exit(main())
