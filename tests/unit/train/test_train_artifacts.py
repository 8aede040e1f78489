from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Rollout, Violation, Vote
from watercolour.train import artifacts, metrics, parquet, summary
from watercolour.train.artifacts import Artifacts
from watercolour.train.rollouts import Painted


def painting(side: int = 192) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side), "#c8322e").save(file, "PNG")
    return file.getvalue()


FULL = Rollout(
    run="test",
    step=3,
    group=1,
    index=2,
    subject="a red poppy",
    seed=2**31 - 1,
    completion="```js\nsketch\n```",
    tokens=12,
    sketch="sketch",
    violations=(Violation(code=ViolationCode.TEXT_LABEL, message="Text.", line=3, column=1),),
    gate_passed=True,
    painting=painting(),
    paint_fraction=0.25,
    pigment_share=0.75,
    shapes=7,
    js_errors=("TypeError",),
    references=("love_1", "okay_2"),
    draw_strength=0.4,
    votes=(Vote(reference="love_1", first="A", second=None, value=None),),
    terms={"gate": 1.0, "quality": None},
    mu=-1.5,
    reward=0.5,
    reward_adjusted=0.52,
    advantage=0.1,
    attempts=2,
    timings={"render": 0.5},
    versions={"p5": "2.3.2"},
)
BARE = Rollout(unscored_reason=Reason.RENDER_DEADLINE, unscored_detail="60 s")


def painted(rollouts: tuple[Rollout, ...], size: int, step: int = 0) -> Painted:
    return Painted(step, size, rollouts, (), (), 1.0, 0.5, 1, 7)


def row(step: int, **cells: float) -> dict[str, metrics.Cell]:
    return {**dict.fromkeys(metrics.COLUMNS), "step": step, **cells}


def test_a_rollout_comes_back_whole_but_for_its_painting(tmp_path: Path) -> None:
    Artifacts(tmp_path).add_rollouts(3, [FULL, BARE])
    lines = parquet.read(tmp_path / "rollouts" / "00003.parquet")
    assert parquet.rollout(lines[0]) == FULL.model_copy(update={"painting": None})
    assert parquet.rollout(lines[1]) == BARE
    assert (tmp_path / lines[0]["painting_file"]).read_bytes() == FULL.painting
    assert (tmp_path / lines[0]["sketch_file"]).read_text() == "sketch"
    with Image.open(tmp_path / lines[0]["thumb_file"]) as thumb:
        assert thumb.size == (96, 96)
    assert [lines[1][name] for name in parquet.FILES] == [None, None, None]


def test_the_schema_holds_every_field_of_the_record() -> None:
    assert set(parquet.SCHEMA.names) == set(Rollout.model_fields) - {"painting"} | set(
        parquet.FILES
    )


def test_metrics_begin_with_the_published_columns_and_leave_unknown_cells_empty(
    tmp_path: Path,
) -> None:
    Artifacts(tmp_path).add_row(row(0, reward=0.0))
    with (tmp_path / "metrics.csv").open(newline="") as file:
        header, line = csv.reader(file)
    assert header[:3] == ["step", "reward", "reward_std"]
    assert tuple(header[: len(metrics.PUBLISHED)]) == metrics.PUBLISHED
    assert line[:3] == ["0", "0", ""]


def test_reopening_removes_what_lies_behind_the_checkpoint(tmp_path: Path) -> None:
    before = Artifacts(tmp_path)
    for step in range(3):
        before.add_rollouts(step, [FULL])
        before.add_row(row(step, reward=step / 8))
    after = artifacts.reopen(tmp_path, 2)
    assert [line["step"] for line in after.rows] == [0, 1]
    assert after.rows == before.rows[:2]
    names = {path.name for path in tmp_path.rglob("*") if "00002" in str(path)}
    assert names == set()
    assert (tmp_path / "rollouts" / "00001.parquet").exists()
    assert (tmp_path / "thumbs" / "00001-00.webp").exists()


def test_a_truncated_rollout_file_is_named_when_read_and_put_aside_on_resume(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Artifacts(tmp_path)
    for step in range(2):
        kept.add_rollouts(step, [FULL])
        kept.add_row(row(step))
    file = tmp_path / "rollouts" / "00001.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"00001\.parquet: cannot be read.*Delete it") as caught:
        parquet.read(file)
    assert caught.value.reason == Reason.ARTIFACTS_DAMAGED
    artifacts.reopen(tmp_path, 2)
    assert "ArtifactsDamaged" in caplog.text
    assert [path.name for path in artifacts.rollout_files(tmp_path)] == ["00000.parquet"]
    assert file.with_suffix(".damaged").exists()


@pytest.mark.parametrize("text", ["", "step,reward\n0,0.5\n", "\x00\x00"])
def test_damaged_metrics_are_refused_on_resume(tmp_path: Path, text: str) -> None:
    (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        artifacts.reopen(tmp_path, 1)
    assert caught.value.reason == Reason.ARTIFACTS_DAMAGED


def test_a_run_of_an_older_version_lacks_columns_of_ours_and_is_gone_on_from(
    tmp_path: Path,
) -> None:
    (tmp_path / "metrics.csv").write_text(
        ",".join(metrics.PUBLISHED) + "\n0,0.5" + "," * (len(metrics.PUBLISHED) - 2) + "\n"
    )
    (line,) = artifacts.reopen(tmp_path, 1).rows
    assert (line["reward"], line["gate_static"]) == (0.5, None)


def test_both_halves_of_the_gate_have_a_share_of_their_own() -> None:
    def refused(code: ViolationCode) -> Rollout:
        return Rollout(
            sketch="a", gate_passed=False, violations=(Violation(code=code, message="No."),)
        )

    rollouts = (
        refused(ViolationCode.SYNTAX_ERROR),
        refused(ViolationCode.BLANK_CANVAS),
        Rollout(sketch="a", gate_passed=True, reward=0.5),
        # The renderer was away: the gate had let it through, and nobody knows of the painting.
        Rollout(sketch="a", unscored_reason=Reason.RENDERER_UNAVAILABLE),
        # The environment was away: nobody knows anything.
        Rollout(unscored_reason=Reason.ENV_UNAVAILABLE),
    )
    found = metrics.of_rollouts(painted(rollouts, 5))
    assert (found["gate_static"], found["gate_painted"]) == (3 / 4, 1 / 2)
    assert found["gate_pass"] == 1 / 3
    away = metrics.of_rollouts(painted(rollouts[4:], 1))
    assert (away["gate_static"], away["gate_painted"]) == (None, None)


def test_metrics_tell_none_from_zero() -> None:
    zero = Rollout(reward=0.0, reward_adjusted=0.0, gate_passed=False, sketch="a")
    one = Rollout(reward=1.0, reward_adjusted=0.9, gate_passed=True, sketch="b", terms={"judge": 1})
    found = metrics.of_rollouts(painted((zero, one, BARE, BARE), 2))
    assert (found["reward"], found["unscored"], found["gate_pass"]) == (0.5, 0.5, 0.5)
    assert found["reward_adjusted_admitted"] == 0.9
    assert found["frac_reward_zero_std"] == 0.0
    assert found["quality_mean"] is None
    assert found["pigment_share"] is None
    # The zero has no violation to explain it.
    assert found["phantom_zeros"] == 1
    empty = metrics.of_rollouts(painted((BARE, BARE), 2))
    assert (empty["reward"], empty["frac_reward_zero_std"], empty["unscored"]) == (None, None, 1.0)


def test_the_pigment_is_the_admitted_paintings_and_what_has_none_is_left_out() -> None:
    blue = Rollout(gate_passed=True, pigment_share=0.5, terms={"pigment": 0.6})
    white = Rollout(gate_passed=True, terms={"pigment": None})
    refused = Rollout(gate_passed=False, terms={"gate": 0.0})
    found = metrics.of_rollouts(painted((blue, white, refused, blue), 2))
    assert (found["pigment_share"], found["pigment_mean"]) == (0.5, pytest.approx(0.6))


def test_a_subjects_colours_are_told_for_the_first_and_the_last_fifth() -> None:
    lines: list[dict[str, Any]] = [
        {"step": step, "subject": subject, "gate_passed": True, "pigment_share": step / 10}
        for step in range(10)
        for subject in ("a blue iris", "a white lily")
    ]
    for line in lines[1::2]:
        line["pigment_share"] = None
    assert summary.by_subject(lines, "pigment_share") == {
        "a blue iris": {"first_fifth": pytest.approx(0.05), "last_fifth": pytest.approx(0.85)},
        "a white lily": {"first_fifth": None, "last_fifth": None},
    }


def test_fifths_leave_unscored_values_out_and_steps_without_rollouts_too() -> None:
    values = [None, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 0.9, 0.7, 0.9]
    rows = [row(step, unscored=0.0) | {"reward": value} for step, value in enumerate(values)]
    assert metrics.fifths([*rows, row(10)], "reward") == (0.2, pytest.approx(0.8))
    assert metrics.fifths([row(0, unscored=1.0)], "reward") == (None, None)


def test_the_summary_counts_phantom_zeros_and_names_the_best_rollout(tmp_path: Path) -> None:
    phantom = Rollout(step=0, reward=0.0, reward_adjusted=0.0, gate_passed=True)
    explained = phantom.model_copy(update={"violations": FULL.violations, "gate_passed": False})
    files = Artifacts(tmp_path)
    files.add_rollouts(0, [phantom, explained, BARE, FULL])
    files.add_row(row(0, reward=0.2, unscored=0.25, step_time=2.0, skipped=0))
    found: dict[str, Any] = summary.summarise(tmp_path, files.rows, {"seconds": 3})
    assert (found["phantom_zeros"], found["unscored_rate"], found["renders"]) == (1, 0.25, 1)
    assert found["best_rollout"]["reward"] == 0.5
    assert found["versions"]["p5"] == "2.3.2"
    needed = """steps seconds step_seconds_median reward_first_fifth reward_last_fifth
        reward_adjusted_first_fifth reward_adjusted_last_fifth gate_pass_first_fifth
        gate_pass_last_fifth unscored_rate phantom_zeros renders render_seconds_median
        peak_memory_mib best_rollout versions pigment_share_first_fifth
        pigment_share_last_fifth pigment_share_by_subject"""
    assert set(needed.split()) <= set(found)


def test_library_that_does_not_say_its_version_costs_no_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "LIBRARIES", ("torch", "not-a-distribution"))
    files = Artifacts(tmp_path)
    files.add_row(row(0))
    found: dict[str, Any] = summary.summarise(tmp_path, files.rows, {})
    assert set(found["versions"]) == {"torch"}
