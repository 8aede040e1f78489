"""An OpenAI-compatible endpoint that marks paintings by what can be measured in them.

It stands in where the recipe ``nine-signal`` wants a vision-language model and there is none: each
mark is a measurement of the picture that was sent, by the parts that ship, and MEASURES says which.
It does not see as a person does; a run that is meant in earnest names a real model.

    python scripts/measuring_model.py      # prints its base URL, until it is interrupted
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread

import numpy as np

from watercolour.render.paint import decode
from watercolour.reward import likeness, pigment, pool, terms
from watercolour.reward.facts import described
from watercolour.reward.pool import Reference
from watercolour.reward.ratings import Tier
from watercolour.score import embedded
from watercolour.score.features import Features
from watercolour.score.pictures import NotAPicture
from watercolour.score.vlm_mark import LEAST_MARK, MOST_MARK
from watercolour.sketch.subjects import subjects

NAME = "measures"

#: Paintings of the pool's okay tier that a painting meets for its mark of technique.
MET = 12

#: Deviation of lightness (CIELAB) over the sheet that has the whole depth. Of the built-in pool's
#: loved paintings the median is 6 and the most 10.
DEEP = 9.0

#: Distance of looks from the nearest loved painting of the subject that earns the whole mark of
#: recognisability: of the pool's loved paintings the median is 0.18, of its poor ones 0.37.
NEAR = 0.18

_heads = Lock()


@cache
def _rated(tier: Tier) -> tuple[Reference, ...]:
    return pool.load("builtin:flowers").tier(tier)


@cache
def _model() -> embedded.Embedded:
    return embedded.load()


@cache
def _features(painting: bytes) -> Features:
    with _heads:
        (found,) = _model().embed([painting])
    if isinstance(found, NotAPicture):
        raise found
    return found


def quality(painting: bytes, _subject: str) -> float:
    """The embedded scorer's score."""
    return _model().score(_features(painting)).score


def technique(painting: bytes, _subject: str) -> float:
    """The share of okay paintings of the pool that the embedded judge sets below this one."""
    okay = _rated("okay")
    met = okay[:: len(okay) // MET]
    own = _features(painting).judge
    margins = [_model().heads.margin(own, _features(one.painting).judge) for one in met]
    return float(np.mean([margin > 0 for margin in margins]))


def adherence(painting: bytes, subject: str) -> float:
    """The term pigment: whether the paint has the subject's colours."""
    colours = pigment.shipped(subject)
    if colours is None:
        return 0.0
    found = pigment.read(decode(painting), colours)
    return terms.pigment(found.share, found.coverage)


def recognisability(painting: bytes, subject: str) -> float:
    """How near its look is to another loved painting of the subject, the one most like it."""
    own = described(painting)
    loved = [one.painting for one in _rated("love") if one.subject == subject]
    apart = [likeness.look_distance(own, described(one)) for one in loved if one != painting]
    nearest = min(apart, default=terms.DIFFERENT)
    return max(0.0, min(1.0, (terms.DIFFERENT - nearest) / (terms.DIFFERENT - NEAR)))


def depth(painting: bytes, _subject: str) -> float:
    """How far lightness is spread over the sheet."""
    return min(1.0, float(likeness.to_lab(decode(painting))[..., 0].std()) / DEEP)


#: What each mark is a measurement of, 0 to 1.
MEASURES: Mapping[str, Callable[[bytes, str], float]] = {
    "mark": quality,
    "adherence": adherence,
    "recognisability": recognisability,
    "aesthetics": quality,
    "technique": technique,
    "depth": depth,
}


def mark(name: str, painting: bytes, subject: str) -> int:
    """A mark from 1 to 10."""
    return LEAST_MARK + round((MOST_MARK - LEAST_MARK) * MEASURES[name](painting, subject))


def answer(asked: BaseHTTPRequestHandler, said: str) -> None:
    """Answer a request for a chat completion with these words."""
    message = {"role": "assistant", "content": said}
    body = json.dumps({"model": NAME, "choices": [{"message": message}]}).encode()
    asked.send_response(200)
    asked.send_header("Content-Type", "application/json")
    asked.send_header("Content-Length", str(len(body)))
    asked.end_headers()
    asked.wfile.write(body)


class _Completion(BaseHTTPRequestHandler):
    """``POST /v1/chat/completions``, as far as marks need it."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request, shown = (message["content"] for message in asked["messages"])
        painting = base64.b64decode(shown[0]["image_url"]["url"].partition(",")[2])
        subject = next((one for one in subjects() if re.search(rf"\b{one}\b", request)), "")
        names = asked["response_format"]["json_schema"]["schema"]["required"]
        said = json.dumps({name: mark(name, painting, subject) for name in names})
        answer(self, said)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of each request."""


@contextmanager
def serving() -> Generator[str]:
    """The endpoint for the length of the block; its base URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Completion) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    with serving() as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            Event().wait()
