"""`watercolour recompute`: stored and published rollouts under a recipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Call
from tests.unit.gallery import fake_run


def test_a_parquet_file_of_a_run_is_recomputed_by_the_run_s_own_recipe(
    call: Call, tmp_path: Path
) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    file = sorted((folder / "rollouts").glob("*.parquet"))[0]
    got = call("recompute", file, "--json").json
    assert got["recipe"] == call("recompute", folder, "--json").json["recipe"]


def test_a_run_is_recomputed_under_another_recipe(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=10)
    got = call("recompute", folder, "--recipe", "hps-led", "--json").json
    gain = got["gain"]
    parts = gain["fewer_bad"] + gain["better_good"] + gain["better_bad"]
    assert parts == pytest.approx(gain["gain"])
    low, high = got["gain_interval"]
    assert low < gain["gain"] < high
    told = call("recompute", folder, "--recipe", "hps-led").out
    assert "under hps-led" in told
    assert "fewer bad paintings" in told


def test_refused_sketches_alone_make_no_gain(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=10)
    # Nobody asked for marks, so that no painting has a value, and a refused sketch has one always.
    got = call("recompute", folder, "--recipe", "nine-signal", "--json").json
    assert 0 < got["scored"] < got["rollouts"]
    assert (got["gain"], got["gain_interval"]) == (None, None)
    assert "Neither fifth can be told" in call("recompute", folder, "--recipe", "hybrid").out


def test_a_parquet_file_of_a_run_is_recomputed_too(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    file = sorted((folder / "rollouts").glob("*.parquet"))[0]
    got = call("recompute", file, "--recipe", "hps-led", "--json").json
    assert got["rollouts"] == 8
    assert call("recompute", folder, "--json").json["rollouts"] == 16


PUBLISHED = {"run": "hps-only", "judge_weight": 0.0, "hpsv3_weight": 0.9}


def published(step: int, position: int, quality: float, **other: object) -> dict[str, object]:
    """A row in the columns of the published rollouts; the reward as their recipe makes it."""
    code = "x" * 4 * 1575  # Half of the wanted length.
    reward = 0.05 + 0.05 * 0.5 + 0.9 * quality
    row = {"step": step, "position_in_group": position, "reward": reward, "code": code}
    return {**PUBLISHED, **row, "code_chars": len(code), **other}


def test_published_rollouts_are_split_into_fewer_bad_and_better_good(
    call: Call, tmp_path: Path
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    rows = [published(0, n, 0.1 if n < 4 else 0.6) for n in range(8)]
    rows += [published(1, n, 0.7) for n in range(8)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    got = call("recompute", tmp_path / "train.parquet", "--json").json
    assert (got["recipe"], got["scored"]) == ("hps-only", 16)
    gain = got["gain"]
    assert gain["gain"] == pytest.approx(0.9 * 0.35)
    assert gain["better_good"] == pytest.approx(0.9 * 0.1 * 0.75)
    assert gain["fewer_bad"] == pytest.approx(0.9 * 0.275)
    # Without a judge the quality follows from the reward, so another recipe that needs none works.
    again = call("recompute", tmp_path / "train.parquet", "--recipe", "hps-only", "--json").json
    assert again["gain"]["gain"] == pytest.approx(gain["gain"])
    # Nobody judged these paintings, and what is not known is not made up.
    none = call("recompute", tmp_path / "train.parquet", "--recipe", "judge-led", "--json").json
    assert (none["scored"], none["gain"]) == (0, None)


def test_published_rollouts_of_a_judged_run_keep_their_reward_and_no_more(
    call: Call, tmp_path: Path
) -> None:

    judged = {"judge_weight": 0.6, "hpsv3_weight": 0.3}
    rows = [published(step, n, 0.5, **judged) for step in range(2) for n in range(8)]
    rows[0]["reward"] = 0.0  # Refused by the gate.
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    got = call("recompute", tmp_path, "--json").json
    assert (got["recipe"], got["scored"]) == ("judge-led", 16)
    other = call("recompute", tmp_path, "--recipe", "hps-only", "--json").json
    assert other["scored"] == 1


def test_what_holds_no_rollouts_is_refused_by_name(call: Call, tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    for path, cause in (
        (tmp_path / "other.jsonl", "neither ours nor the published ones"),
        (tmp_path / "gone.parquet", "no such file"),
    ):
        got = call("recompute", path)
        assert got.status == 1
        assert cause in got.err
