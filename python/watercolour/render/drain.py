"""Empty a renderer before it is stopped: ``python -m watercolour.render.drain --seconds 70``.

It asks the renderer on this machine to take no new work, and returns when nothing is being painted
any more, when the renderer has gone, or when the time is over. What is painted by then is lost to
its asker, who paints it elsewhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.request

#: Seconds between two looks.
PAUSE_SECONDS = 0.2

#: Seconds in which a renderer has to answer.
ANSWER_SECONDS = 5.0


def drained(url: str, seconds: float) -> bool:
    """Whether the renderer has nothing left to paint after at most ``seconds``.

    Raises:
        OSError: it does not answer.
    """
    until = time.monotonic() + seconds
    busy = _busy(f"{url}/v1/drain", b"")
    while busy:
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE_SECONDS)
        busy = _busy(f"{url}/v1/load", None)
    return True


def _busy(url: str, body: bytes | None) -> int:
    """Sketches that are being painted; with a body the request is a POST."""
    with urllib.request.urlopen(url, body, timeout=ANSWER_SECONDS) as answer:
        return int(json.load(answer)["busy"])


def main() -> int:
    """Command line; 0 unless something was still being painted when the time was over."""
    parser = argparse.ArgumentParser(prog="watercolour.render.drain", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="the renderer's port")
    parser.add_argument("--seconds", type=float, required=True, help="longest wait")
    args = parser.parse_args()
    try:
        empty = drained(f"http://127.0.0.1:{args.port}", args.seconds)
    except OSError as error:
        sys.stderr.write(f"watercolour: the renderer has gone ({error})\n")
        return 0
    if not empty:
        sys.stderr.write(f"watercolour: still painting after {args.seconds:g} s\n")
    return 0 if empty else 3


if __name__ == "__main__":
    sys.exit(main())
