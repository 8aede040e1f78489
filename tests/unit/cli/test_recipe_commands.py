"""`watercolour recipe`: list, show, terms, explain."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Call
from tests.unit.gallery import fake_run

from watercolour.gallery import record
from watercolour.reward import catalogue


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


def test_a_package_whose_term_is_broken_hides_no_other_term(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Callable[..., Path]
) -> None:
    installed(
        tmp_path,
        {"torn": "raise RuntimeError('no licence for numpy')", "ended": "raise SystemExit(9)"},
        {"area": "torn", "half": "torn", "quits": "ended"},
    )
    monkeypatch.syspath_prepend(tmp_path)
    forget(monkeypatch)
    got = call("recipe", "terms")
    assert got.status == 0
    assert "gate, 0 to 1" in got.out
    assert "half, 0 to 1" not in got.out
    assert "the term half of plug 1.5 (torn:TERM): it cannot be imported: RuntimeError" in got.err
    assert "no licence for numpy" in got.err
    assert (
        "the term quits of plug 1.5 (ended:TERM): it cannot be imported: SystemExit: 9" in got.err
    )
    # A package may not put its own term in a shipped one's place, and is not passed over silently.
    assert "the term area of plug 1.5" in got.err
    told = call("recipe", "terms", "--json").json
    assert [one["name"] for one in told["broken"]] == ["area", "half", "quits"]
    assert "area" in [one["name"] for one in told["terms"]]
    for words in (("list",), ("show", "hybrid")):
        assert call("recipe", *words).status == 0
    # Only who weighs it is refused, before anything is started.
    recipe = {"name": "mine", "weights": {"gate": 0.1, "half": 0.9}}
    refused = call("run", spec(recipe=recipe), "--no-open")
    assert refused.status == 1
    assert "the term half of plug 1.5" in refused.err
    assert "take its weight away" in refused.err
    assert not (tmp_path / "runs").exists()


def installed(folder: Path, modules: Mapping[str, str], terms: Mapping[str, str]) -> None:
    """A distribution ``plug`` with modules, and entry points for terms in them."""
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    data = folder / "plug-1.5.dist-info"
    data.mkdir()
    (data / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.5\n")
    lines = "\n".join(f"{name} = {module}:TERM" for name, module in terms.items())
    (data / "entry_points.txt").write_text(f"[{catalogue.GROUP}]\n{lines}\n")


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the entry points read anew, and by the next test again."""
    for known in (catalogue._entries, catalogue._loaded):  # pyright: ignore[reportPrivateUsage]
        known.cache_clear()
        monkeypatch.setattr(catalogue, known.__name__, cache(known.__wrapped__))


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
        told = call("recipe", "explain", "--rollout", *named, "--json").json
        # Away from its run there is no painting from which a term could still be read.
        if named[0] == lone:
            assert [one["term"] for one in told["missing"]] == ["pigment"]
            told["missing"] = []
        assert told == by_painting
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
    assert "a term has no value here, the run gave 0.400" in told.out


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


def test_a_file_that_is_no_runs_painting_is_refused(call: Call, tmp_path: Path) -> None:
    stray = tmp_path / "stray.png"
    assert "lies in no run's folder" in call("recipe", "explain", stray).err
    folder = fake_run.make(tmp_path / "dawn", steps=1)
    found = call("recipe", "explain", folder / "paintings" / "00000" / "99.png")
    assert found.status == 1
    assert "no rollout of" in found.err
