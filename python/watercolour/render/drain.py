"""Empty a renderer before it is stopped.

``python -m watercolour.render.drain --socket FILE --seconds 70`` asks the renderer that serves
this Unix socket to take no new work, and returns when nothing is being painted any more, when the
renderer has gone, or when the time is over. What is painted by then is lost to its asker, who
paints it elsewhere.

A renderer's port cannot be used for that: a command that a kubelet runs in its container is put
into the network in which the renderer has shut itself in, and there nobody listens.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import httpx

#: Seconds between two looks.
PAUSE_SECONDS = 0.2

#: Seconds in which a renderer has to answer.
ANSWER_SECONDS = 5.0


def drained(path: Path, seconds: float) -> bool:
    """Whether the renderer has nothing left to paint after at most ``seconds``.

    Raises:
        httpx.HTTPError: it does not answer.
    """
    until = time.monotonic() + seconds
    transport = httpx.HTTPTransport(uds=str(path))
    with httpx.Client(
        transport=transport, base_url="http://renderer", timeout=ANSWER_SECONDS
    ) as http:
        answer = http.post("/v1/drain")
        while answer.raise_for_status().json()["busy"]:
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE_SECONDS)
            answer = http.get("/v1/load")
    return True


def main() -> int:
    """Command line; 0 unless something was still being painted when the time was over."""
    parser = argparse.ArgumentParser(prog="watercolour.render.drain", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="the renderer's --drain-socket")
    parser.add_argument("--seconds", type=float, required=True, help="longest wait")
    args = parser.parse_args()
    try:
        empty = drained(args.socket, args.seconds)
    except httpx.HTTPError as error:
        sys.stderr.write(f"watercolour: the renderer has gone ({error})\n")
        return 0
    if not empty:
        sys.stderr.write(f"watercolour: still painting after {args.seconds:g} s\n")
    return 0 if empty else 3


if __name__ == "__main__":
    sys.exit(main())
