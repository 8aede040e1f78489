"""A tiny service that stands in for a real one: it listens, announces, and leaves a child behind.

Usage: ``python stand_in.py MODE --port N --announce FILE``. The child, in a session of its own,
ignores SIGTERM; its pid is printed, so a test can see whether it survived.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

PROGRESS = {"step": 1, "steps": 3, "phase": "training", "reward": {"mean": 0.5}}
DEMAND = {"queued": 2, "inflight": 1, "announced": 8}
MODES = {
    "serve": "serves until SIGTERM",
    "die": "ends at once with exit status 7 and a last word",
    "refuse": "ends at once with exit status 1 and a structured error",
    "deaf": "serves and ignores SIGTERM",
    "loading": "serves and is never ready",
    "trainer": "serves /progress; on SIGTERM writes a checkpoint and exits 143",
    "stubborn": "a trainer that takes no notice of SIGTERM",
    "hasty": "a trainer that ends well at once, with a summary",
    "weak": "a trainer that refuses to go on",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--port", type=int)
    parser.add_argument("--announce", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true")
    args, _ = parser.parse_known_args()
    mode: str = args.mode
    if mode == "die":
        sys.stderr.write("no browser here\n")
        sys.exit(7)
    if mode == "refuse":
        sys.stderr.write(json.dumps({"level": "error", "message": "spec.x=1: wrong."}) + "\n")
        sys.exit(1)
    if mode in ("deaf", "stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "trainer":
        signal.signal(signal.SIGTERM, lambda *_: checkpoint(args.out))
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    server = HTTPServer(("127.0.0.1", args.port), handler(ready=mode != "loading"))
    print(f"child={child.pid} resume={args.resume}", flush=True)
    part = args.announce.with_name(args.announce.name + ".part")
    url = f"http://127.0.0.1:{server.server_port}"
    part.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    part.replace(args.announce)
    if mode == "hasty":
        (args.out / "summary.json").write_text(json.dumps({"steps": 3, "peak_memory_mib": None}))
    elif mode == "weak":
        sys.stderr.write(json.dumps({"message": "PolicyTooWeak: 1 of 16 passed."}) + "\n")
        sys.exit(1)
    else:
        server.serve_forever()


def checkpoint(out: Path) -> None:
    (out / "checkpoints" / "checkpoint-1").mkdir(parents=True)
    os._exit(143)


def handler(*, ready: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if ready else 503)
            self.end_headers()
            told = DEMAND if self.path == "/v1/demand" else PROGRESS
            self.wfile.write(json.dumps(told).encode() if ready else b"loading")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


if __name__ == "__main__":
    main()
