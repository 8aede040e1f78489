from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.gallery import fake_run

from watercolour import cli
from watercolour.api import InfrastructureError, Reason
from watercolour.gallery import record
from watercolour.local import files
from watercolour.reward import pool as pools

SKETCH = """function setup() { createCanvas(192, 192, WEBGL); noLoop(); }
function draw() { background("#fff"); brush.fill("#a33", 160); brush.circle(0, 0, 40); }
"""


class Outcome:
    """Exit status and both streams of one command."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object and nothing else."""
        value: Any = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Call = Callable[..., Outcome]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    def run(*words: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = cli.status([str(word) for word in words])
        said = capsys.readouterr()
        return Outcome(status, said.out, said.err)

    return run


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., Path]:
    def write(**fields: Any) -> Path:
        path = tmp_path / "run.yaml"
        whole = {
            "apiVersion": "watercolour.dev/v1alpha1",
            "kind": "WatercolourRun",
            "metadata": {"name": "try"},
            "spec": {"artifacts": {"path": str(tmp_path / "runs")}, **fields},
        }
        path.write_text(yaml.safe_dump(whole))
        return path

    return write


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from watercolour import cli; cli.status(['--help']); "
        "heavy = ['torch', 'pydantic', 'rich', 'httpx', 'jinja2', 'pyarrow', 'PIL', 'numpy']; "
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert "Exit status" in ran.stdout


@pytest.mark.parametrize("words", [[], ["frob"], ["gate"], ["score"], ["run", "x", "--set", "y"]])
def test_wrong_usage_exits_with_2(call: Call, words: list[str]) -> None:
    got = call(*words)
    assert got.status == 2
    assert got.out == ""


# gate


def test_a_good_sketch_is_admitted(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(SKETCH)
    assert call("gate", tmp_path / "a.js").status == 0
    got = call("gate", tmp_path / "a.js", "--json")
    assert (got.status, got.json) == (0, {"admitted": True, "violations": []})


def test_a_chat_reply_on_standard_input_is_admitted(call: Call) -> None:
    assert call("gate", "-", stdin=f"Here it is:\n```js\n{SKETCH}```".encode()).status == 0


def test_a_refused_sketch_exits_with_1_and_names_code_and_place(call: Call) -> None:
    bad = SKETCH.replace("brush.circle", "brush.splash").encode()
    got = call("gate", "-", stdin=bad)
    assert got.status == 1
    assert got.out == ""
    assert "unknown_brush_method  line 2, column " in got.err
    found = call("gate", "-", "--json", stdin=bad).json
    assert found["admitted"] is False
    codes = [violation["code"] for violation in found["violations"]]
    assert "unknown_brush_method" in codes
    assert set(found["violations"][0]) == {"code", "line", "column", "message"}


def test_the_ten_methods_are_stricter_than_all(call: Call) -> None:
    wash = SKETCH.replace("brush.circle", "brush.wash('#abc', 99); brush.circle").encode()
    assert call("gate", "-", stdin=wash).status == 0
    assert call("gate", "-", "--allow", "ten", stdin=wash).status == 1
    assert call("gate", "-", "--allow", "fill,circle,wash", stdin=wash).status == 0


def test_an_html_reply_is_no_sketch(call: Call) -> None:
    got = call("gate", "-", "--json", stdin=b"<!doctype html><html><p>Sorry</p></html>")
    assert got.status == 1
    assert got.json["violations"][0]["code"] == "no_sketch_in_response"


def test_a_2_mb_sketch_is_too_long(call: Call) -> None:
    long = SKETCH.encode() + b"// " + b"petal " * 350_000
    got = call("gate", "-", "--json", stdin=long)
    assert got.status == 1
    assert got.json["violations"][0]["code"] == "too_long"


def test_a_monstrous_file_is_not_even_read_whole(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST_SKETCH", 1000)
    got = call("gate", "-", stdin=b"a" * 1001)
    assert got.status == 1
    assert "larger than" in got.err


def test_invalid_utf_8_is_told_with_byte_and_line(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_bytes(b"let a = 1;\nlet b = '\xff';\n")
    got = call("gate", tmp_path / "a.js", "--json")
    assert got.status == 1
    assert got.json["error"]["reason"] == "InvalidInput"
    assert got.json["error"]["field"] == "FILE"
    assert "byte 0xff in line 2" in got.err
    assert "UTF-8" in got.json["error"]["remedy"]


@pytest.mark.parametrize("command", ["gate", "run", "report"])
def test_a_missing_file_is_the_inputs_fault(call: Call, tmp_path: Path, command: str) -> None:
    got = call(command, tmp_path / "absent")
    assert got.status == 1
    assert "absent" in got.err
    assert "Traceback" not in got.err


# run


@pytest.mark.parametrize(
    ("fields", "overrides", "said"),
    [
        ({"recipe": {"name": "hps-let"}}, [], "Did you mean 'hps-led'"),
        (
            {"recipe": {"weights": {"gate": 0.1, "length": 0.1, "quality": 0.1, "judge": 0.1}}},
            [],
            "sum to 0.4, not to 1",
        ),
        ({"trainer": {"groupSize": 6}}, [], "rolloutsPerStep=16: not a multiple of groupSize=6"),
        ({}, ["--set", "spec.trainer.groupSize=6"], "not a multiple of groupSize=6"),
        ({}, ["--set", "spec.trainer.stepz=6"], "spec.trainer.stepz"),
        ({}, ["--name", "Not A Name"], "metadata.name"),
        ({"prompts": {"subjects": []}}, [], "spec.prompts.subjects"),
    ],
)
def test_a_bad_specification_names_field_and_remedy(
    call: Call, spec: Callable[..., Path], fields: dict[str, Any], overrides: list[str], said: str
) -> None:
    got = call("run", spec(**fields), *overrides, "--json")
    assert got.status == 1
    assert said in got.err
    assert set(got.json["error"]) == {"reason", "message", "remedy", "field", "value"}
    assert "Traceback" not in got.err


def test_a_run_without_the_renderers_environment_says_how_to_get_it(
    call: Call, spec: Callable[..., Path], tmp_path: Path
) -> None:
    got = call("run", spec(), "--renderer-python", tmp_path / "python", "--json")
    assert got.status == 3
    assert got.json["error"]["reason"] == "BrowserMissing"
    assert "make setup" in got.json["error"]["remedy"]


def test_an_existing_run_is_refused_with_the_two_remedies(
    call: Call, spec: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "runs" / "try").mkdir(parents=True)
    (tmp_path / "runs" / "try" / "metrics.csv").touch()
    got = call("run", spec(), "--json")
    assert got.status == 1
    assert got.json["error"]["reason"] == "RunExists"
    assert "--resume" in got.json["error"]["remedy"]
    assert "--name" in got.json["error"]["remedy"]


# score


def test_a_text_file_is_no_painting(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("not a picture")
    got = call("score", tmp_path / "a.png", "--json")
    assert got.status == 1
    assert got.json["error"]["field"] == "PNG"
    assert "a.png" in got.err


def test_paintings_are_scored_in_the_order_given(call: Call) -> None:
    folder = pools.locate("builtin:flowers") / "paintings"
    chosen = sorted(folder.glob("*_hibiscus_01.*"))[:3]
    got = call("score", *chosen, "--json").json
    assert [row["painting"] for row in got["scores"]] == [str(path) for path in chosen]
    assert all(0 < row["score"] < 1 for row in got["scores"])


# report


def test_the_recipes_are_listed_and_their_terms_told(call: Call) -> None:
    listed = call("recipe", "list", "--json").json["recipes"]
    assert listed["judge-led"]["judge"] == 0.6
    assert "failed gate" in call("recipe", "list").out
    shown = call("recipe", "show", "embedded").out
    assert "a reward from 0 to 1" in shown
    assert "subject's colours" in shown
    refused = call("recipe", "show", "embeded")
    assert refused.status == 1
    assert "Did you mean 'embedded'?" in refused.err


def test_a_recipes_file_is_shown_with_its_steps(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "bold.yaml"
    path.write_text(
        "name: bold\nweights: {gate: 0.1, quality: 0.9}\n"
        "schedule: {stages: [{step: 50, weights: {gate: 0.1, judge: 0.9}}]}\n"
        "curriculum: [{step: 7, tierShares: {love: 1, okay: 0}}]\nkl: {}\n"
    )
    told = call("recipe", "show", path).out
    assert "from step 50    gate 0.1, judge 0.9" in told
    assert "from step 7     love 1" in told
    assert "KL term: weight 0.02 to 0.04 over 100 steps (cosine)" in told
    path.write_text("name: bold\nweights: {gate: 0.1, qality: 0.9}\n")
    assert "Did you mean quality" in call("recipe", "show", path).err
    path.write_text("name: bold\nweights: {gate: 0.1}\n")
    assert "sum to 0.1, not to 1" in call("recipe", "show", path).err


def test_every_term_is_told_with_its_unit_and_source(call: Call) -> None:
    told = call("recipe", "terms", "--json").json["terms"]
    assert {"gate", "area", "mark_depth", "diversity"} <= {term["name"] for term in told}
    assert all(term["unit"] and term["source"] and term["meaning"] for term in told)
    assert "diversity, 0 to 1" in call("recipe", "terms").out


def test_a_paintings_reward_is_explained_term_by_term(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    entries = [entry for entry in record.read(folder).entries if entry.rollout.gate_passed]
    entry = next(entry for entry in entries if entry.rollout.reward is not None)
    assert entry.painting
    told = call("recipe", "explain", folder / entry.painting, "--recipe", "hps-only")
    assert entry.rollout.subject in told.out
    assert "love_01 lost" not in told.out
    assert "love_01 won, okay_04 tied" in told.out
    found = call(
        "recipe", "explain", folder / entry.painting, "--recipe", "hps-only", "--json"
    ).json
    quality = entry.rollout.terms["quality"]
    assert quality is not None
    assert found["reward"] == pytest.approx(0.05 + 0.05 * 0.3 + 0.9 * quality)
    assert found["reward_of_the_run"] == entry.rollout.reward


def test_a_rollout_is_explained_from_json_and_by_its_place(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    entry = next(entry for entry in record.read(folder).entries if entry.rollout.gate_passed)
    whole = entry.rollout
    place = f"{whole.step}/{whole.group}/{whole.index}"
    file = sorted((folder / "rollouts").glob("*.parquet"))[whole.step]
    lone = tmp_path / "rollout.json"
    lone.write_text(whole.model_dump_json(exclude={"painting"}))
    lines = folder / "some.jsonl"
    # A table that pandas writes out has maps as pairs.
    fields = whole.model_dump(mode="json", exclude={"painting"})
    fields |= {"terms": list(whole.terms.items())}
    rows = [fields | {"index": n} for n in range(8)]
    lines.write_text("\n".join(map(json.dumps, rows)))
    assert entry.painting
    by_painting = call("recipe", "explain", folder / entry.painting, "--json").json
    assert by_painting["terms"]
    for named in (
        (folder, "--id", place),
        (file, "--id", place),
        (lines, "--id", place),
        (lone, "--recipe", by_painting["recipe"]),
    ):
        assert call("recipe", "explain", "--rollout", *named, "--json").json == by_painting
    told = call("recipe", "explain", "--rollout", folder, "--id", place).out
    assert f"step {whole.step}, group {whole.group}, member {whole.index}" in told


def test_a_rollout_of_no_run_is_explained_by_the_weights_that_made_its_reward(
    call: Call, tmp_path: Path
) -> None:
    lone = tmp_path / "rollout.json"
    rollout = {
        "gate_passed": True,
        "terms": {"gate": 1.0, "judge": 0.25, "area": None},
        "weights": {"gate": 0.2, "judge": 0.8},
        "reward": 0.4,
    }
    lone.write_text(json.dumps(rollout))
    found = call("recipe", "explain", "--rollout", lone, "--json").json
    assert (found["recipe"], found["reward"]) == ("its own weights", pytest.approx(0.4))
    # What was never found out has no value, and what weighs nothing adds nothing.
    area = next(part for part in found["terms"] if part["term"] == "area")
    assert (area["value"], area["adds"]) == (None, 0.0)
    signed = rollout | {"reward": 0.2 - 0.8 * 0.5}
    lone.write_text(json.dumps(signed))
    found = call("recipe", "explain", "--rollout", lone, "--json").json
    judge = next(part for part in found["terms"] if part["term"] == "judge")
    assert judge["adds"] == pytest.approx(-0.4)
    for unknown in (rollout | {"reward": 0.9}, rollout | {"reward": None}):
        lone.write_text(json.dumps(unknown))
        got = call("recipe", "explain", "--rollout", lone)
        assert got.status == 1
        assert "--recipe" in got.err
    # Under a recipe that needs what nobody found out there is no reward, and never a 0.
    lone.write_text(json.dumps(rollout))
    told = call("recipe", "explain", "--rollout", lone, "--recipe", "judge-led")
    assert "a term has no value here; the run gave 0.400" in told.out


def test_a_rollout_that_nobody_names_is_refused_with_what_there_is(
    call: Call, tmp_path: Path
) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    broken = tmp_path / "broken.json"
    for words, status, cause in (
        ((), 2, "Name a PAINTING or a --rollout"),
        (("a.png", "--rollout", folder), 2, "one of the two"),
        (("a.png", "--id", "0/0/0"), 2, "--id goes with --rollout"),
        (("--rollout", folder), 1, "it holds 16, from 0/0/0 to 1/1/3, and nobody says which"),
        (("--rollout", folder, "--id", "7/0/0"), 1, "7/0/0 is no rollout of it"),
        (("--rollout", folder, "--id", "7"), 2, "is not STEP/GROUP/MEMBER"),
        (("--rollout", folder, "--id", "-1/0/0"), 2, "is not STEP/GROUP/MEMBER"),
        (("--rollout", broken), 1, "no such file"),
    ):
        got = call("recipe", "explain", *words)
        assert got.status == status, got.err
        assert cause in got.err
    for text, cause in (
        ("{", "Expecting property name"),
        ("7", "a JSON int, must hold objects"),
        ("[]", "it has no rows"),
        ('{"gate_passed": true, "terms": {"gate": "much"}}', "neither ours nor the published"),
        ("[" * 100_000, "recursion"),
    ):
        broken.write_text(text)
        got = call("recipe", "explain", "--rollout", broken, "--recipe", "hps-only")
        assert got.status == 1
        assert cause in got.err


def test_a_parquet_file_of_a_run_is_recomputed_by_the_run_s_own_recipe(
    call: Call, tmp_path: Path
) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    file = sorted((folder / "rollouts").glob("*.parquet"))[0]
    got = call("recompute", file, "--json").json
    assert got["recipe"] == call("recompute", folder, "--json").json["recipe"]


def test_a_file_that_is_no_runs_painting_is_refused(call: Call, tmp_path: Path) -> None:
    stray = tmp_path / "stray.png"
    assert "lies in no run's folder" in call("recipe", "explain", stray).err
    folder = fake_run.make(tmp_path / "dawn", steps=1)
    found = call("recipe", "explain", folder / "paintings" / "00000" / "99.png")
    assert found.status == 1
    assert "no rollout of" in found.err


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
    import json

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


def test_a_report_is_written_and_named(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    got = call("report", folder, "--json")
    assert got.status == 0
    assert got.json == {"out": str(folder / "report.html"), "steps": 2, "rollouts": 16}
    assert (folder / "report.html").is_file()


def test_a_run_is_found_by_its_name(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_run.make(tmp_path / "runs" / "dawn", steps=1)
    monkeypatch.chdir(tmp_path)
    assert call("report", "dawn").status == 0


def test_a_strip_is_written_beside_no_report(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    assert call("report", folder, "--strip", tmp_path / "strip.png").status == 0
    assert (tmp_path / "strip.png").read_bytes().startswith(b"\x89PNG")
    assert not (folder / "report.html").exists()


def test_an_output_that_cannot_be_written_is_told(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=1)
    (tmp_path / "file").touch()
    got = call("report", folder, "--strip", tmp_path / "file" / "strip.png")
    assert got.status == 1
    assert "strip.png: cannot be written" in got.err


def test_a_damaged_file_is_warned_of_on_stderr(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    first = sorted((folder / "rollouts").iterdir())[0]
    first.write_bytes(first.read_bytes()[:99])
    got = call("report", folder, "--json")
    assert got.status == 0
    assert got.json["steps"] == 1
    assert first.name in got.err


# pool


def test_the_builtin_pool_is_whole(call: Call) -> None:
    got = call("pool", "check", "--json").json
    assert got["references"] == sum(got["tiers"].values())
    assert set(got["tiers"]) == {"love", "okay", "meh"}


def test_a_pool_with_a_broken_painting_names_the_file(call: Call, tmp_path: Path) -> None:
    shutil.copytree(pools.locate("builtin:flowers"), tmp_path / "pool")
    broken = sorted((tmp_path / "pool" / "paintings").iterdir())[0]
    broken.write_bytes(broken.read_bytes()[:100])
    got = call("pool", "check", tmp_path / "pool", "--json")
    assert got.status == 1
    assert got.json["error"]["reason"] == "InvalidPool"
    assert broken.name in got.err


def test_pool_show_lists_the_strongest_first(call: Call) -> None:
    rows = call("pool", "show", "--json").json["references"]
    strengths = [row["strength"] for row in rows]
    assert strengths == sorted(strengths, reverse=True)


# errors


def test_an_error_is_one_paragraph_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    error = InfrastructureError(Reason.BROWSER_MISSING, "no browser.", remedy="Get one.")
    assert cli.tell(error, False) == 3
    assert capsys.readouterr() == ("", "watercolour: no browser. Get one.\n")


def test_a_fault_of_ours_shows_a_traceback_and_stays_json(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.js").write_text(SKETCH)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("petals")

    monkeypatch.setattr("watercolour.sketch.gate.inspect", broken)
    got = call("gate", tmp_path / "a.js", "--json")
    assert got.status == 3
    assert got.json["error"]["reason"] == "InternalError"
    assert "Traceback" in got.err
    assert "Please report it" in got.err
