"""Small HTTP servers that stand for renderer, scorer and judge, and fail on demand."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from PIL import Image

Answer = tuple[int, Any]


def png(colour: str) -> bytes:
    """A white sheet, a quarter of it painted in one colour."""
    sheet, file = Image.new("RGB", (16, 16), "white"), io.BytesIO()
    sheet.paste(colour, (0, 0, 8, 8))
    sheet.save(file, "PNG")
    return file.getvalue()


#: What the renderer sends: red, as of a poppy.
PAINTING = png("#d43428")

SKETCH = """
function setup() {
  createCanvas(192, 192, WEBGL);
  angleMode(DEGREES);
  noLoop();
}
function draw() {
  translate(-96, -96);
  background("#fffaf0");
  brush.noStroke();
  brush.fill("#e08070", 180);
  brush.circle(96, 96, 40);
}
"""


def write_pool(folder: Path) -> Path:
    """A pool of eight paintings, four a tier, the love ones stronger."""
    (folder / "paintings").mkdir(parents=True)
    (folder / "sketches").mkdir()
    records: list[dict[str, Any]] = []
    for n in range(8):
        tier = "love" if n < 4 else "okay"
        name = f"{tier}_{n}"
        picture = io.BytesIO()
        Image.new("RGB", (64, 64), (20 * n, 128, 128)).save(picture, "PNG")
        painting, sketch = picture.getvalue(), f"// {name}".encode()
        (folder / "paintings" / f"{name}.png").write_bytes(painting)
        (folder / "sketches" / f"{name}.js").write_bytes(sketch)
        records.append(
            {
                "name": name,
                "subject": "a red poppy",
                "tier": tier,
                "strength": (1.5 if tier == "love" else 0.0) + 0.1 * n,
                "painting_sha256": hashlib.sha256(painting).hexdigest(),
                "sketch_sha256": hashlib.sha256(sketch).hexdigest(),
            }
        )
    (folder / "paintings.json").write_text(json.dumps(records))
    card = {"name": "test", "what": "colours", "made": "here", "licence": "none", "canvas": 64}
    (folder / "pool.yaml").write_text(json.dumps(card))
    return folder


def reply(sketch: str = SKETCH) -> str:
    """A policy's reply with the sketch in its fence."""
    return f"```javascript\n{sketch}\n```"


def another(n: int) -> str:
    """A reply whose sketch is like no other n's."""
    return reply(SKETCH.replace("40", str(40 + n)))


class Edge:
    """One server; ``posts`` holds the bodies that it got, ``answer`` decides what it says."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.answer = answer
        self.gets: dict[str, Answer] = {"/readyz": (200, {}), "/livez": (200, {})}
        self.posts: list[dict[str, Any]] = []
        self.looks = 0
        self.retry_after: str | None = None
        self.url = ""
        self.lock = threading.Lock()


@contextmanager
def serving(edge: Edge) -> Iterator[Edge]:
    """Serve on a free port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send(*edge.gets.get(self.path, (404, {})))
            edge.looks += 1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with edge.lock:
                edge.posts.append(body)
            self.send(*edge.answer(body))

        def send(self, status: int, body: Any) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            if edge.retry_after is not None:
                self.send_header("Retry-After", edge.retry_after)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    edge.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield edge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def painted(**fields: Any) -> Answer:
    """What a renderer answers when all went well."""
    return 200, {
        "painting": base64.b64encode(PAINTING).decode(),
        "paint_fraction": 0.2,
        "shapes": 3,
        "js_errors": [],
        "timings": {"draw": 0.1},
        "cpu_seconds": 0.1,
        "rasterizer": "software",
        "versions": {"p5.brush": "2.2.1"},
    } | fields


def away(reason: str = "RendererUnavailable") -> Answer:
    """What a renderer answers when it is broken."""
    return 503, {"reason": reason, "detail": "the browser is gone"}


def drains() -> Answer:
    """What a renderer answers that takes no new work."""
    return 503, {"reason": "RendererUnavailable", "detail": "no work is taken", "taken": False}


def fault(code: str) -> Answer:
    """What a renderer answers when the sketch is at fault."""
    return 422, {"violation": {"code": code, "message": "the sketch"}, "js_errors": ["boom"]}


def renderer(slots: int = 2) -> Edge:
    """A renderer that paints everything at once."""
    edge = Edge(lambda body: painted())
    edge.gets["/readyz"] = (200, {"slots": slots, "draining": False})
    return edge


def scored(mu: float) -> Answer:
    """What a scorer answers."""
    return 200, {"mu": mu, "sigma": 1.0, "score": 0.5, "backend": "embedded", "version": "1"}


def scorer(mu: float = 0.0) -> Edge:
    """A scorer to which every painting is worth the same."""
    return Edge(lambda body: scored(mu))


def says(winner: str) -> Answer:
    """What a judge answers."""
    content = json.dumps({"winner": winner, "reason": "softer"})
    return 200, {"choices": [{"message": {"content": content}}]}


def judge() -> Edge:
    """A judge that always says A."""
    return Edge(lambda body: says("A"))
