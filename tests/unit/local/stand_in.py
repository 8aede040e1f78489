"""A tiny service that stands in for a real one: it listens, announces, and leaves a child behind.

Usage: ``python stand_in.py MODE --port N --announce FILE``. The child, in a session of its own,
ignores SIGTERM; its pid is printed, so a test can see whether it survived.

Modes: ``serve``; ``die`` ends at once with exit status 7 and a last word; ``refuse`` ends with
exit status 1; ``deaf`` listens and ignores SIGTERM; ``loading`` never becomes ready; ``trainer``
serves /progress and exits 143 on SIGTERM; ``done`` announces and ends well.
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

PROGRESS = {"step": 1, "steps": 3, "reward": {"mean": 0.5}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode")
    parser.add_argument("--port", type=int)
    parser.add_argument("--announce", type=Path)
    args, _ = parser.parse_known_args()
    if args.mode == "die":
        sys.stderr.write("no browser here\n")
        sys.exit(7)
    if args.mode == "refuse":
        sys.stderr.write(json.dumps({"level": "error", "message": "spec.x=1: wrong."}) + "\n")
        sys.exit(1)
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    if args.mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if args.mode == "trainer":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ready = args.mode != "loading"
            self.send_response(200 if ready else 503)
            self.end_headers()
            self.wfile.write(json.dumps(PROGRESS).encode() if ready else b"loading")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", args.port), Handler)
    print(f"child={child.pid}", flush=True)
    part = args.announce.with_name(args.announce.name + ".part")
    url = f"http://127.0.0.1:{server.server_port}"
    part.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    part.replace(args.announce)
    if args.mode != "done":
        server.serve_forever()


if __name__ == "__main__":
    main()
