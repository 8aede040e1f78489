"""Emptying a renderer before it is stopped."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import pytest

from watercolour.render import drain


class Renderer(ThreadingUnixStreamServer):
    """Answers as a renderer does; one sketch ends with each look at its load."""

    daemon_threads = True

    def __init__(self, path: Path, busy: int) -> None:
        super().__init__(str(path), Handler)
        self.path = path
        self.busy = busy
        self.asked: list[str] = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._renderer.busy = max(0, self._renderer.busy - 1)
        self._answer()

    @property
    def _renderer(self) -> Renderer:
        assert isinstance(self.server, Renderer)
        return self.server

    def _answer(self) -> None:
        self._renderer.asked.append(f"{self.command} {self.path}")
        body = json.dumps({"slots": 2, "busy": self._renderer.busy, "draining": True}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def renderer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Renderer]:
    server = Renderer(tmp_path / "drain.sock", busy=request.param)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("renderer", [0], indirect=True)
def test_an_idle_renderer_is_asked_once(renderer: Renderer) -> None:
    assert drain.drained(renderer.path, 5)
    assert renderer.asked == ["POST /v1/drain"]


@pytest.mark.parametrize("renderer", [2], indirect=True)
def test_a_busy_renderer_is_waited_for(renderer: Renderer) -> None:
    assert drain.drained(renderer.path, 30)
    assert renderer.asked == ["POST /v1/drain", "GET /v1/load", "GET /v1/load"]


@pytest.mark.parametrize("renderer", [10**6], indirect=True)
def test_the_wait_has_an_end(renderer: Renderer) -> None:
    assert not drain.drained(renderer.path, 0)


@pytest.mark.parametrize("renderer", [0], indirect=True)
def test_a_renderer_that_has_gone_needs_no_wait(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer.server_close()
    monkeypatch.setattr("sys.argv", ["drain", "--socket", str(renderer.path), "--seconds", "5"])
    assert drain.main() == 0
