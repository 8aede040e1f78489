"""The commands on pools: what they refuse, what they leave alone, what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from PIL import Image
from tests.unit.reward import pool_ground

from watercolour import cli
from watercolour.api.spec import TierShares
from watercolour.cli import pool_rating
from watercolour.reward import calibration
from watercolour.reward import pool as pools
from watercolour.reward.calibration import Bout

JELLYFISH = Path(__file__).parents[3] / "examples" / "subjects" / "jellyfish.yaml"


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = cli.status([str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--subject", "a dragon"), 1, "the grammar does not know it"),
        ((), 2, "Say what to paint"),
        (("--subject", "a red poppy", "--from", "model"), 2, "--endpoint URL and --model NAME"),
        (("--subject", "a red poppy", "--from", "rollouts"), 2, "needs --rollouts RUN"),
        (("--subject", "nowhere.yaml"), 1, "cannot be read"),
        (("--subject", "a red poppy", "--licence", "mine!"), 1, "this licence is not known"),
    ],
)
def test_what_cannot_be_painted_leaves_no_folder(
    words: tuple[str, ...],
    status: int,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "mine"
    found, _, err = call(capsys, "pool", "generate", folder, *words)
    assert (found, told in err) == (status, True), err
    assert not folder.exists()


def test_another_s_folder_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    status, _, err = call(capsys, "pool", "generate", tmp_path, "--subject", JELLYFISH)
    assert status == 1
    assert "it is no pool" in err
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_a_pool_of_one_tier_is_told_what_that_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pool_ground.make(tmp_path / "mine", ["okay", "okay", None])
    status, out, err = call(capsys, "pool", "check", folder)
    assert status == 0
    assert "2 references (2 okay)" in out
    assert "1 wait to be rated" in err
    assert "references.tierShares has to take that tier alone" in err


def test_a_pool_that_nobody_has_rated_says_how_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pool_ground.make(tmp_path / "mine", [None, None])
    status, _, err = call(capsys, "pool", "check", folder)
    assert status == 1
    assert f"watercolour pool rate {folder}" in err


def test_real_pictures_come_in_and_show_their_author(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scan = tmp_path / "scan.jpg"
    Image.new("RGB", (200, 100), "teal").save(scan)
    folder, by = tmp_path / "mine", ("--licence", "cc-by-4.0", "--attribution", "Anna Artist")
    status, out, _ = call(
        capsys, "pool", "import", folder, scan, "--subject", JELLYFISH, "--tier", "love", *by
    )
    assert (status, out) == (0, f"{folder}: 1 references added\n")
    status, out, _ = call(capsys, "pool", "show", folder, "--sheet", tmp_path / "sheet.png")
    assert "by Anna Artist (CC-BY-4.0)" in out
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (192, 206)
    # The subject's description is kept, so the next command need not be told it.
    assert (folder / "subject.yaml").exists()
    status, _, err = call(capsys, "pool", "import", folder, scan, "--licence", "own")
    assert status == 0
    assert "it looks like jellyfish_001" in err


def test_a_picture_without_licence_makes_no_pool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scan = tmp_path / "scan.jpg"
    Image.new("RGB", (200, 100), "teal").save(scan)
    words = ("pool", "import", tmp_path / "mine", scan, "--subject", "a jellyfish")
    assert call(capsys, *words)[0] == 2
    assert call(capsys, *words, "--licence", "CC-BY-4.0")[0] == 1
    assert not (tmp_path / "mine").exists()


def test_a_pool_is_published_and_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pool_ground.make(tmp_path / "mine", ["love", "okay", "meh"])
    for target in (tmp_path / "mine.parquet", tmp_path / "out"):
        assert call(capsys, "pool", "publish", folder, target)[0] == 0
        back = tmp_path / f"back-{target.name}"
        status, out, _ = call(capsys, "pool", "fetch", target, back, "--json")
        assert status == 0
        told: dict[str, Any] = json.loads(out)
        assert told["paintings"] == 3
        assert pools.load(back).references == pools.load(folder).references


def test_the_shipped_pool_can_be_taken_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(capsys, "pool", "fetch", "builtin:flowers", tmp_path / "mine")[0] == 0
    same = pools.load(tmp_path / "mine").references
    assert same == pools.load("builtin:flowers").references


@pytest.mark.parametrize("shares", ["1", "0.5,0.5", "a,b,c", "0.5,0.5,0.5"])
def test_shares_that_are_none_are_refused(shares: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "pool", "calibrate", "--shares", shares)
    assert status == 2
    assert "three shares that sum to 1" in err


def test_an_interval_that_begins_at_0_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    lost = [Bout(str(n), "love", 0.0) for n in range(9)]
    found = calibration.calibrate(lost, TierShares(love=1, okay=0, meh=0))
    with pytest.raises(click.exceptions.Exit):
        pool_rating._tell("mine", found, 9, json_=False)  # pyright: ignore[reportPrivateUsage]
    assert "9 paintings win 0 % (95 %: 0 % to 0 %)" in capsys.readouterr().out


def test_a_reference_is_no_painting_of_the_policys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pools.locate("builtin:flowers")
    own = pools.painting_path(folder, "love_iris_09")
    photo = tmp_path / "photo.jpg"
    with Image.open(own) as picture:
        picture.convert("RGB").resize((300, 300)).save(photo, quality=90)
    others = [tmp_path / f"{colour}.png" for colour in ("teal", "salmon")]
    for path in others:
        Image.new("RGB", (192, 192), path.stem).save(path)
    # A copy of a reference is refused too, whatever its file's format and size.
    for file in (own, photo):
        words = [word for path in (*others, file) for word in ("--painting", path)]
        status, out, err = call(capsys, "pool", "calibrate", *words)
        assert (status, out) == (1, "")
        assert f"--painting {file}: it is the pool's reference love_iris_09" in err


def test_a_painting_counts_once_in_a_calibration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words: list[object] = []
    for name, colour in (("a.png", "teal"), ("b.png", "salmon"), ("again.tiff", "teal")):
        Image.new("RGB", (192, 192), colour).save(tmp_path / name)
        words += ["--painting", tmp_path / name]
    status, _, err = call(capsys, "pool", "calibrate", *words)
    assert status == 1
    assert f"again.tiff: it is the same picture as {tmp_path / 'a.png'}, pixel for pixel" in err
    assert "Name every painting once" in err
