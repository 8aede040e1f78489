"""Put the renderers' seccomp profile where a node's kubelet looks for it.

``python -m watercolour_operator.profile --from FILE --to FILE`` writes the file, whole or not at
all, and leaves it alone when it is there already. With ``--sleep`` it does nothing until it is
stopped: a DaemonSet has to have a container that runs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path


def install(source: Path, target: Path) -> bool:
    """Copy a profile; returns whether anything had to be written.

    A kubelet may read the file at any moment, so it is replaced in one step.

    Raises:
        OSError: the profile cannot be read, or the folder not be written.
        ValueError: the profile is no JSON.
    """
    wanted = source.read_bytes()
    json.loads(wanted)
    if target.exists() and target.read_bytes() == wanted:
        return False
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(wanted)
        # Readable for everybody: a kubelet need not be root, and a profile is no secret.
        unfinished.chmod(0o644)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return True


def main(argv: list[str] | None = None) -> int:
    """Install the profile, or sleep until SIGTERM."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, help="profile to install")
    parser.add_argument("--to", dest="target", type=Path, help="file that the kubelet reads")
    parser.add_argument("--sleep", action="store_true", help="do nothing until stopped")
    args = parser.parse_args(argv)
    if args.sleep:
        # The first process of a container gets no signal that it does not ask for.
        stops = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, stops)
        signal.sigwait(stops)
        return 0
    if args.source is None or args.target is None:
        parser.error("--from and --to are needed, or --sleep")
    try:
        written = install(args.source, args.target)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"watercolour: cannot install {args.source} as {args.target}: {error}\n")
        return 3
    sys.stderr.write(f"watercolour: {args.target}: {'written' if written else 'is there'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
