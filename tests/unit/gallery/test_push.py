"""An adapter and its page on the hub: huggingface_hub itself, against a hub of our own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image
from tests.unit.gallery import hub_server

from watercolour.api import load
from watercolour.api.spec import WatercolourRun
from watercolour.gallery import model_card, push
from watercolour.train import companions

MODULE = [sys.executable, "-m", companions.PUSHER.module]
COMMAND = [sys.executable, "-m", "watercolour.cli"]


@pytest.fixture
def hub() -> Generator[hub_server.Hub]:
    with hub_server.served() as found:
        yield found


def painted(folder: Path, steps: int) -> Path:
    """A run's folder with a painting a step, made without the trainer's libraries."""
    (folder / "rollouts").mkdir(parents=True)
    (folder / "metrics.csv").write_text(
        "step,reward,unscored\n" + "".join(f"{step},0.5,0\n" for step in range(steps))
    )
    for step in range(steps):
        Image.new("RGB", (64, 64), (40 * step, 90, 120)).save(folder / f"{step}.png")
        row = {"step": step, "group": 0, "index": 0, "subject": "a red poppy", "reward": 0.5}
        row |= {"gate_passed": True, "painting_file": f"{step}.png"}
        pq.write_table(pa.Table.from_pylist([row]), folder / "rollouts" / f"{step:05}.parquet")
    return folder


def spec(folder: Path, **hub: Any) -> WatercolourRun:
    """A run of the folder's name, with checkpoints every 2 steps."""
    run = {
        "metadata": {"name": "poppies"},
        "spec": {
            "model": {"id": "/srv/secret-place/my-model", "tokenSecretRef": {"name": "inner"}},
            "trainer": {"steps": 4, "checkpointEvery": 2, "rolloutsPerStep": 8},
            "judge": {"backend": "openai", "endpoint": "http://judge.internal/v1", "model": "m"},
            "artifacts": {"hub": {"repo": "anna/poppies", **hub}},
        },
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(run))
    return load.run(folder / "run.yaml")


def checkpoint(folder: Path, step: int, weights: bytes = b"weights") -> None:
    inner = folder / "checkpoints" / f"checkpoint-{step}"
    inner.mkdir(parents=True)
    (inner / push.ADAPTER).write_bytes(weights)
    (inner / push.CONFIG).write_text('{"base_model_name_or_path": "/srv/secret-place/my-model"}')
    (inner / "optimizer.pt").write_bytes(b"not theirs")
    (inner / "manifest.json").write_text("{}")


def ask(hub: hub_server.Hub, words: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name not in companions.SECRETS}
    # The protocol of the hub's own storage is compiled; without it files go by HTTP.
    here = {"HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": ""}
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**plain, **here, **env},
        timeout=300,
    )


def follow(hub: hub_server.Hub, folder: Path, *more: str, **env: str) -> list[dict[str, Any]]:
    """What the process beside the trainer says, after the trainer has ended."""
    words = [*MODULE, "--spec", str(folder / "run.yaml"), "--out", str(folder), *more]
    found = ask(hub, words, **env)
    assert (found.returncode, found.stdout) == (0, "")
    return [json.loads(line) for line in found.stderr.splitlines()]


def test_adapter_page_and_figures_are_one_commit(hub: hub_server.Hub, tmp_path: Path) -> None:
    folder = painted(tmp_path / "poppies", 4)
    spec(folder)
    checkpoint(folder, 2, b"old")
    checkpoint(folder, 4, bytes(range(256)) * 4000)
    (line,) = follow(hub, folder, WATERCOLOUR_PUSH_TOKEN="hf_writes")
    assert "step 4 is on the hub" in line["message"]
    repo = hub.repositories["anna/poppies"]
    assert repo.private
    ((message, files),) = repo.commits
    assert message == "Step 4 of 4"
    assert set(files) == {push.ADAPTER, push.CONFIG, push.STRIP, push.CARD, "metrics.csv"}
    assert files[push.ADAPTER] == bytes(range(256)) * 4000
    assert files[push.STRIP].startswith(b"\x89PNG")
    whole = b"".join(value for name, value in files.items() if name != push.STRIP)
    for private in (b"secret-place", b"judge.internal", b"inner", b"hf_writes"):
        assert private not in whole
    assert not list(folder.glob(".push-*"))
    # What the hub has is not pushed again, whoever follows.
    assert follow(hub, folder, WATERCOLOUR_PUSH_TOKEN="hf_writes") == []
    assert len(repo.commits) == 1


def test_a_push_that_fails_is_said_and_made_up_for_by_the_command(
    hub: hub_server.Hub, tmp_path: Path
) -> None:
    folder = painted(tmp_path / "poppies", 2)
    spec(folder)
    checkpoint(folder, 2)
    (line,) = follow(hub, folder, HF_TOKEN="mistaken")
    assert line["level"] == "warning"
    assert "refuses the token (HTTP 401)" in line["message"]
    assert f"Again by: watercolour push {folder}" in line["message"]
    assert "mistaken" not in line["message"]
    assert hub.repositories == {}
    # A hub that is in trouble for a moment is asked again.
    hub.faults = [500]
    found = ask(hub, [*COMMAND, "push", str(folder), "--json"], HF_TOKEN="hf_writes")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["step"] == 2
    assert [len(repo.commits) for repo in hub.repositories.values()] == [1]


def test_a_hub_out_of_reach_is_said_with_what_opens_the_way(
    hub: hub_server.Hub, tmp_path: Path
) -> None:
    folder = painted(tmp_path / "poppies", 2)
    spec(folder)
    checkpoint(folder, 2)
    (line,) = follow(hub, folder, HF_TOKEN="hf_writes", HF_HUB_OFFLINE="1")
    assert "HubUnavailable" in line["message"]
    assert "spec.egress.trainer" in line["message"]
    assert hub.requests == []
    found = ask(hub, [*COMMAND, "push", str(tmp_path), "--json"])
    assert found.returncode == 1


def test_only_every_second_checkpoint_is_due_but_always_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = spec(tmp_path, every=2)
    pushed: list[int] = []

    def note(_: WatercolourRun, out: Path) -> push.Pushed:
        step = push.step_of(push.checkpoints(out)[-1])
        if step == 8:
            raise RuntimeError("a fault of ours")
        pushed.append(step)
        (out / push.PUSHED).write_text(str(step))
        return push.Pushed(step, "")

    monkeypatch.setattr(push, "push", note)
    tried: set[int] = set()

    def look(*, last: bool = False) -> None:
        push._look(wanted, tmp_path, tried, last=last)  # pyright: ignore[reportPrivateUsage]

    look(last=True)
    # Before the first step there is a cold start to go on from, and no result.
    for step in (0, 2, 4, 6, 8):
        checkpoint(tmp_path, step)
        look()
        look()
    assert pushed == [4]
    (tmp_path / "checkpoints" / "checkpoint-10").mkdir()
    assert push.step_of(push.checkpoints(tmp_path)[-1]) == 8
    checkpoint(tmp_path, 11)
    look()
    look(last=True)
    assert pushed == [4, 11]


def test_the_page_of_a_model_of_the_hub_names_it_and_says_how_to_load_it() -> None:
    run = load.from_dict(
        {
            "metadata": {"name": "poppies"},
            "spec": {"model": {"id": "owner/base"}, "trainer": {"steps": 10}},
        }
    )
    rows: list[dict[str, float | None]] = [
        {"step": 0, "reward": 0.25, "gate_pass": 0.5, "unscored": 0.0},
        {"step": 1, "reward": None, "gate_pass": None, "unscored": 1.0},
    ]
    page = model_card.write(run, 2, rows, None)
    head = yaml.safe_load(page.split("---")[1])
    assert head["base_model"] == "owner/base"
    assert 'from_pretrained("owner/base"' in page
    # What does not exist is a dash and never 0.
    assert "| reward | 0.250 | – |" in page
    assert "![" not in page
    assert "first fifth" not in model_card.write(run, 0, [], None)


def test_a_folder_that_holds_a_policy_is_told_by_its_last_part_alone() -> None:
    run = load.from_dict(
        {
            "metadata": {"name": "poppies"},
            "spec": {
                "model": {"id": "/srv/anna/policy"},
                "references": {"pool": "/srv/anna/pool"},
                "trainer": {"resources": {"limits": {"cpu": 2}}, "lora": {"r": 4}},
            },
        }
    )
    told = model_card.told(run)
    assert told["model"] == {"id": "policy"}
    assert told["references"] == {"pool": "pool"}
    assert told["trainer"] == {"lora": {"r": 4}}
    assert "/srv" not in model_card.write(run, 0, [], None)
