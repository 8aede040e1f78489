"""A pool made from the command line's own parts, by the real renderer and a model over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import Server

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.reward import pool as pools
from watercolour.reward import pool_critique, pool_generate, pool_intake, pool_writers
from watercolour.reward.pool_critique import Critic, Studio
from watercolour.reward.pool_writers import Proposal, Writer
from watercolour.score.completions import Completions

SKETCH = """\
function setup() {{
  createCanvas(128, 128, WEBGL);
  noLoop();
}}
function draw() {{
  background("#faf5ea");
  brush.noStroke();
  brush.fill("#4a5fc4", 200);
  brush.fillBleed(0.2);
  brush.circle({}, 0, {});
}}
"""


def fenced(sketch: str) -> str:
    return f"Here it is.\n```javascript\n{sketch}```"


class Model:
    """An OpenAI-compatible endpoint; ``write`` paints, ``look`` criticises."""

    def __init__(self) -> None:
        self.replies: list[str] = []
        # Calls of one batch come in any order; what they ask for tells them apart.
        self.by_seed: dict[int, str] = {}
        self.critiques: list[dict[str, Any] | str] = []
        self.asked: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with model.lock:
                    model.asked.append(body)
                    waiting: list[Any] = model.replies
                    if "response_format" in body:
                        waiting = model.critiques
                    answer = model.by_seed.get(body.get("seed", -1))
                    if answer is None and waiting:
                        answer = waiting.pop(0)
                if answer is None:
                    self.send_response(404)
                    self.end_headers()
                    return
                text = answer if isinstance(answer, str) else json.dumps(answer)
                choice = {"message": {"role": "assistant", "content": text}}
                data = json.dumps({"choices": [choice]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def model() -> Iterator[Model]:
    running = Model()
    yield running
    running.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    pool_intake.open_or_make(made, canvas=96, what="Dots.", made="By a test.", licence="CC0-1.0")
    return made


def critique(mark: int) -> dict[str, Any]:
    return {"mark": mark, "keep": "the blue", "faults": ["it is small"], "change": "Grow it."}


async def test_what_a_model_wrote_is_gated_painted_and_there_once(
    folder: Path, server: Server, model: Model
) -> None:
    written = [
        fenced(SKETCH.format(0, 30)),
        "I cannot paint.",
        fenced(SKETCH.format(0, 30)),
        fenced(SKETCH.format(0, 30).replace("brush.circle", "ellipse")),
        fenced(SKETCH.format(0, 30).replace("brush.circle(0", "brush.circle([][0].x")),
        fenced(SKETCH.format(-30, 22)),
        fenced(SKETCH.format(0, 1).replace("#4a5fc4", "#faf5ea")),
        fenced(SKETCH.format(30, 16)),
    ]
    model.by_seed = dict(enumerate(written, 7))
    writer = Writer(Completions(model.url), "painter")
    seed = pool_writers.Seed("seed_001", b"\x89PNG", "Anna", "CC-BY-4.0")
    done = await pool_generate.generate(
        folder,
        "a blue dot",
        pool_writers.from_model(writer, "a blue dot", seed=7, brief="It is round.", seeds=[seed]),
        [server.url],
        count=3,
        attempts=20,
    )
    await writer.completions.aclose()
    assert done.added == ["blue-dot_001", "blue-dot_002", "blue-dot_003"]
    assert done.refused == {
        "no_sketch_in_response": 1,
        "duplicate": 1,
        "bare_primitives": 1,
        "js_error": 1,
        "blank_canvas": 1,
    }
    records = pools.read_records(folder)
    assert {record.generator for record in records} == {"painter"}
    assert records[0].attribution == "after Anna"
    assert all(record.tier is None for record in records)
    first = model.asked[0]
    assert {one["seed"] for one in model.asked} == set(range(7, 15))
    words = json.dumps(first["messages"])
    assert "It is round." in words
    assert "data:image/png;base64," in words
    assert "scaleBrushes" in first["messages"][0]["content"]


async def test_a_model_that_does_not_answer_is_given_up(
    folder: Path, server: Server, model: Model
) -> None:
    writer = Writer(Completions(model.url, attempts=1), "painter")
    with pytest.raises(InfrastructureError) as caught:
        await pool_generate.generate(
            folder,
            "a blue dot",
            pool_writers.from_model(writer, "a blue dot", seed=1),
            [server.url],
            count=3,
            attempts=200,
        )
    await writer.completions.aclose()
    assert caught.value.reason == Reason.ENDPOINT_UNAVAILABLE
    assert len(model.asked) <= 2 * pool_writers.MOST_FAILURES


async def test_a_rollout_that_is_a_painting_of_the_pool_is_left_out(
    folder: Path, server: Server
) -> None:
    async def take(*sketches: str) -> pool_generate.Generated:
        found = [Proposal(sketch, 1, {"origin": "rollout"}) for sketch in sketches]
        return await pool_generate.generate(
            folder,
            "a blue dot",
            pool_writers.from_list(found),
            [server.url],
            count=len(found),
            attempts=9,
        )

    assert (await take(SKETCH.format(0, 30))).added == ["blue-dot_001"]
    # Other words, the same picture.
    again = await take(f"// another\n{SKETCH.format(0, 30)}", SKETCH.format(25, 20))
    assert again.added == ["blue-dot_002"]
    assert again.refused == {"duplicate": 1}
    assert "blue-dot_001" in again.examples["duplicate"]


async def _begun(folder: Path, server: Server, count: int) -> None:
    sketches = [SKETCH.format(-20 + 20 * n, 12) for n in range(count)]
    await pool_generate.generate(
        folder,
        "a blue dot",
        pool_writers.from_list([Proposal(sketch, 1) for sketch in sketches]),
        [server.url],
        count=count,
        attempts=9,
    )


async def test_three_rounds_of_critique_are_kept_with_their_reasons(
    folder: Path, server: Server, model: Model
) -> None:
    await _begun(folder, server, 1)
    model.critiques = [critique(4), critique(8), critique(6)]
    model.replies = [
        fenced(SKETCH.format(0, 24)),
        fenced(SKETCH.format(0, 24).replace("brush.circle", "ellipse")),
        fenced(SKETCH.format(0, 40)),
    ]
    completions = Completions(model.url)
    studio = Studio(Critic(completions, "critic"), Writer(completions, "painter"), rounds=3)
    waiting = pool_critique.waiting(folder, pools.read_records(folder))
    (story,) = await pool_critique.refine(folder, waiting, studio, [server.url])
    await completions.aclose()

    told = [(each.number, each.outcome, each.painting) for each in story.rounds]
    assert told == [
        (0, "set aside", "blue-dot_001"),
        (1, "kept", "blue-dot_001-r1"),
        (2, "refused", None),
        (3, "set aside", "blue-dot_001-r3"),
    ]
    assert story.rounds[1].why == "mark 8, the others 4, 6"
    assert story.rounds[2].why.startswith("bare_primitives")
    assert pool_critique.read_story(folder, "blue-dot_001") == story
    records = {record.name: record for record in pools.read_records(folder)}
    assert {name for name, record in records.items() if not record.aside} == {"blue-dot_001-r1"}
    assert records["blue-dot_001"].aside == "critique: mark 4; round 1 has 8"
    assert records["blue-dot_001-r3"].parent == "blue-dot_001-r1"
    assert [pools.sketch_path(folder, name).exists() for name in records] == [True] * 3
    # Nothing of it is done twice.
    assert pool_critique.waiting(folder, pools.read_records(folder)) == []

    painters = [one for one in model.asked if "response_format" not in one]
    assert "Grow it." in painters[0]["messages"][-1]["content"]
    assert "mark" not in painters[0]["messages"][-1]["content"]
    assert "bare_primitives" in painters[2]["messages"][-1]["content"]


async def test_a_critic_that_breaks_off_keeps_what_was_painted(
    folder: Path, server: Server, model: Model
) -> None:
    await _begun(folder, server, 1)
    model.critiques = [critique(4), "Very nice!"]
    model.replies = [fenced(SKETCH.format(0, 24))]
    completions = Completions(model.url, attempts=1)
    studio = Studio(Critic(completions, "critic"), Writer(completions, "painter"))
    waiting = pool_critique.waiting(folder, pools.read_records(folder))
    (story,) = await pool_critique.refine(folder, waiting, studio, [server.url])
    await completions.aclose()
    assert [each.outcome for each in story.rounds] == ["kept", "failed"]
    assert "breaks the schema" in story.rounds[1].why
    records = {record.name: record for record in pools.read_records(folder)}
    assert not records["blue-dot_001"].aside
    assert "breaks the schema" in records["blue-dot_001-r1"].aside


async def test_a_critic_that_sees_nothing_ends_the_rounds(
    folder: Path, server: Server, model: Model
) -> None:
    await _begun(folder, server, 2)
    completions = Completions(model.url, attempts=1)
    studio = Studio(Critic(completions, "critic"), Writer(completions, "painter"))
    waiting = pool_critique.waiting(folder, pools.read_records(folder))
    with pytest.raises(InfrastructureError) as caught:
        await pool_critique.refine(folder, waiting, studio, [server.url])
    await completions.aclose()
    assert caught.value.reason == Reason.ENDPOINT_UNAVAILABLE
    assert not (folder / "rounds").exists()
    assert not any(record.aside for record in pools.read_records(folder))
