from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from watercolour.api import InfrastructureError, InputError, WatercolourRun, load
from watercolour.api.status import Progress
from watercolour.local import run as local
from watercolour.local.guard import descendants
from watercolour.local.run import Programs

STAND_IN = Path(__file__).with_name("stand_in.py")
ROOT = Path(__file__).parents[3]


def programs(**modes: str) -> Programs:
    """Stand-ins for all components; ``trainer="hasty"`` chooses what one does."""
    parts = {"renderer": "serve", "scorer": "serve", "env": "serve", "trainer": "hasty", **modes}
    return Programs(**{name: (sys.executable, str(STAND_IN), mode) for name, mode in parts.items()})


class Recorder:
    """A display that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.shown: list[Progress] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def update(self, progress: Progress) -> None:
        self.shown.append(progress)


def spec(folder: Path, **more: Any) -> WatercolourRun:
    return load.from_dict(
        {
            "apiVersion": "watercolour.dev/v1alpha1",
            "kind": "WatercolourRun",
            "metadata": {"name": "try"},
            "spec": {"artifacts": {"path": str(folder)}, **more},
        }
    )


def test_a_finished_run_has_a_summary_with_its_peak_memory(tmp_path: Path) -> None:
    finished = local.run(spec(tmp_path), Recorder(), programs())
    stored = json.loads((tmp_path / "try" / "summary.json").read_text())
    assert stored == finished.summary
    assert stored["steps"] == 3
    assert stored["peak_memory_mib"] > 1
    assert stored["restarts"] == {}
    assert not descendants(os.getpid())


def test_the_whole_specification_is_kept_with_the_run(tmp_path: Path) -> None:
    wanted = spec(tmp_path, seed=7)
    local.run(wanted, Recorder(), programs())
    assert load.run(tmp_path / "try" / "run.yaml").spec == wanted.spec


@pytest.mark.parametrize("part", ["renderer", "scorer", "env", "trainer"])
def test_a_component_that_cannot_start_ends_the_run_and_is_named(tmp_path: Path, part: str) -> None:
    with pytest.raises(InfrastructureError, match=f"{part} ended with exit status 7"):
        local.run(spec(tmp_path), Recorder(), programs(**{part: "die"}))
    assert not descendants(os.getpid())


def test_what_the_trainer_says_is_the_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trainer: 1 of 16 passed") as caught:
        local.run(spec(tmp_path), Recorder(), programs(trainer="weak"))
    assert caught.value.reason == "PolicyTooWeak"


def test_a_start_that_failed_does_not_take_the_name(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError):
        local.run(spec(tmp_path), Recorder(), programs(env="die"))
    local.run(spec(tmp_path), Recorder(), programs())


def test_a_run_that_exists_is_refused_with_both_remedies(tmp_path: Path) -> None:
    (tmp_path / "try").mkdir()
    (tmp_path / "try" / "metrics.csv").touch()
    with pytest.raises(InputError, match=r"--resume.*--name") as caught:
        local.run(spec(tmp_path), Recorder(), programs())
    assert caught.value.reason == "RunExists"
    assert caught.value.field == "metadata.name"


def test_a_run_that_is_going_on_is_refused(tmp_path: Path) -> None:
    (tmp_path / "try").mkdir()
    with local.locked(tmp_path / "try"), pytest.raises(InputError, match="another process"):
        local.run(spec(tmp_path), Recorder(), programs())


def test_a_resume_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no checkpoint") as caught:
        local.run(spec(tmp_path), Recorder(), programs(), resume=True)
    assert caught.value.reason == "CheckpointMissing"


def begun(folder: Path, **more: Any) -> None:
    """A run that was stopped after its first checkpoint."""
    (folder / "try" / "checkpoints" / "checkpoint-1").mkdir(parents=True)
    local.write_spec(folder / "try", spec(folder, **more))


def test_a_resume_tells_the_trainer(tmp_path: Path) -> None:
    begun(tmp_path)
    local.run(spec(tmp_path), Recorder(), programs(), resume=True)
    assert "resume=True" in (tmp_path / "try" / "logs" / "trainer.log").read_text()


def test_a_resume_may_change_the_steps(tmp_path: Path) -> None:
    begun(tmp_path, trainer={"steps": 3})
    local.run(spec(tmp_path, trainer={"steps": 5}), Recorder(), programs(), resume=True)


def test_a_resume_under_other_weights_is_told_each_of_them(tmp_path: Path) -> None:
    own = {"gate": 0.4, "quality": 0.6}
    begun(tmp_path, recipe={"name": "mine", "weights": own})
    other = {"name": "mine", "weights": {"gate": 0.4, "quality": 0.5, "judge": 0.1}}
    with pytest.raises(InputError) as caught:
        local.run(spec(tmp_path, recipe=other), Recorder(), programs(), resume=True)
    assert "weights.quality: 0.6 → 0.5; weights.judge: absent → 0.1" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"), [("seed", 2), ("recipe", {"name": "hps-only"}), ("model", {"id": "x"})]
)
def test_a_resume_may_not_change_what_is_trained(tmp_path: Path, field: str, value: Any) -> None:
    begun(tmp_path)
    with pytest.raises(InputError, match=rf"spec\.{field}: differs from the run") as caught:
        local.run(spec(tmp_path, **{field: value}), Recorder(), programs(), resume=True)
    assert caught.value.field == f"spec.{field}"


def test_an_unknown_recipe_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such recipe"):
        local.run(spec(tmp_path, recipe={"name": "taste"}), Recorder(), programs())
    assert not (tmp_path / "try").exists()


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("spec.scorer.backend", {"recipe": {"name": "nine-signal"}}),
        ("spec.judge.backend", {"recipe": {"name": "judge-led"}, "judge": {"backend": "none"}}),
        ("spec.references.pool", {"references": {"pool": "/no/such/pool"}}),
        ("key-file", {}),
    ],
)
def test_what_could_never_train_starts_nothing(
    tmp_path: Path, field: str, more: dict[str, Any]
) -> None:
    shown, key = Recorder(), tmp_path / "no-key" if field == "key-file" else None
    with pytest.raises(InputError) as caught:
        local.run(spec(tmp_path, **more), shown, programs(), judge_key_file=key)
    assert caught.value.field == field
    assert shown.said == []
    assert not (tmp_path / "try").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"spec\.artifacts\.path=.*cannot be made"):
        local.run(spec(tmp_path / "file"), Recorder(), programs())


def test_without_an_embedded_part_no_scorer_is_started(tmp_path: Path) -> None:
    elsewhere = spec(
        tmp_path,
        scorer={"backend": "hpsv3", "endpoint": "http://127.0.0.1:9"},
        judge={"backend": "openai", "endpoint": "http://127.0.0.1:9", "model": "x"},
    )
    assert not local.needs_scorer(elsewhere.spec)
    local.run(elsewhere, Recorder(), programs(scorer="die"))


def test_a_trainer_without_a_summary_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="no summary") as caught:
        local.complete_summary(tmp_path, 1.0, {}, 1.0)
    assert caught.value.reason == "ArtifactsDamaged"


def test_peak_memory_of_an_earlier_attempt_counts(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"peak_memory_mib": 900}')
    assert local.complete_summary(tmp_path, 100.0, {}, 1.0)["peak_memory_mib"] == 900


def start(tmp_path: Path, trainer: str) -> subprocess.Popen[str]:
    """A run in a process of its own; its lines on stdout are what the display is told."""
    script = textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        from pathlib import Path
        from tests.unit.local.test_run import programs, spec
        from watercolour.api import WatercolourError
        from watercolour.local import run

        class Display:
            def say(self, text): print(text, flush=True)
            def update(self, progress): print("progress", progress.queue.queued, flush=True)

        try:
            run.run(
                spec(Path({str(tmp_path)!r})), Display(), programs(trainer={trainer!r}),
                again="watercolour run x --resume",
            )
        except WatercolourError as error:
            print(error, flush=True)
            sys.exit(error.exit_code)
        """
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def wait_for(running: subprocess.Popen[str], line: str) -> None:
    assert running.stdout is not None
    assert line in iter(running.stdout.readline, ""), f"ended before it said {line!r}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_a_resumable_run_and_no_process(tmp_path: Path, number: int) -> None:
    with start(tmp_path, "trainer") as running:
        wait_for(running, "progress 2\n")
        below = descendants(running.pid)
        running.send_signal(number)
        said, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Go on with: watercolour run x --resume" in said
    assert (tmp_path / "try" / "checkpoints" / "checkpoint-1").is_dir()
    assert len(below) == 12, "four guards, four services, four children"
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


def test_a_second_stop_does_not_wait(tmp_path: Path) -> None:
    with start(tmp_path, "stubborn") as running:
        wait_for(running, "progress 2\n")
        below = descendants(running.pid)
        running.send_signal(signal.SIGINT)
        wait_for(running, "stopping after a checkpoint; Ctrl-C again stops at once\n")
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "stopped before its first checkpoint" in said
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


def test_a_dead_renderer_is_started_again(tmp_path: Path) -> None:
    with start(tmp_path, "trainer") as running:
        wait_for(running, "progress 2\n")
        log = tmp_path / "try" / "logs" / "renderer.log"
        child = int(log.read_text().split("child=")[1].split()[0])
        parent = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
        wait_for(running, "renderer ended and was started again\n")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode == 130
