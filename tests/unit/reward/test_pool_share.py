"""A pool travels as a folder, a parquet file or a data set, and comes back as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.disk import largest_file
from tests.unit.reward import pool_ground

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.gallery import rating
from watercolour.reward import pool as pools
from watercolour.reward import pool_build, pool_hub, pool_share, pool_subject, pool_votes
from watercolour.reward.pool import Pool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four rated paintings, one of them imported; one unrated; comparisons by a person."""
    made = pool_ground.make(tmp_path / "mine", ["love", "okay", "okay", "meh", None])
    records = list(pools.read_records(made))
    records[1] = records[1].model_copy(
        update={
            "origin": "imported",
            "sketch_sha256": "",
            "licence": "CC-BY-4.0",
            "attribution": "Anna Artist",
            "source": "a museum",
        }
    )
    pools.sketch_path(made, "p_002").unlink()
    pool_build.write_records(made, records)
    for number in range(3):
        rating.compare(made, "anna", f"pair-{number:04d}", "p_003", "p_001", "left")
    return made


def same(one: Pool, other: Pool) -> None:
    assert one.card == other.card
    assert one.references == other.references


def test_a_pool_comes_back_from_parquet_as_it_was(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "mine.parquet"
    assert pool_share.to_parquet(folder, target) == 4
    back = tmp_path / "back"
    assert pool_share.from_parquet(target, back) == 4
    same(pools.load(folder), pools.load(back))
    told = {r.name: r for r in pools.read_records(back)}
    assert told["p_002"].attribution == "Anna Artist"
    assert "p_005" not in told
    # The strengths rest on the comparisons, which came along; who made them did not.
    assert len(pool_votes.read(back)) == 3
    again = pool_votes.fitted(back, pools.read_records(back))
    assert [r.strength for r in again] == [r.strength for r in told.values()]
    assert b"anna" not in target.read_bytes()


def test_a_pool_comes_back_from_a_folder_as_it_was(folder: Path, tmp_path: Path) -> None:
    assert pool_share.to_folder(folder, tmp_path / "out") == 4
    assert pool_share.from_folder(tmp_path / "out", tmp_path / "back") == 4
    same(pools.load(folder), pools.load(tmp_path / "back"))
    assert not (tmp_path / "out" / "ratings").exists()
    assert not pools.painting_path(tmp_path / "out", "p_005").exists()


def test_a_description_of_the_subject_goes_where_the_pool_goes(
    folder: Path, tmp_path: Path
) -> None:
    jellyfish = Path(__file__).parents[3] / "examples/subjects/jellyfish.yaml"
    (folder / "subject.yaml").write_bytes(jellyfish.read_bytes())
    pool_share.to_parquet(folder, tmp_path / "mine.parquet")
    pool_share.from_parquet(tmp_path / "mine.parquet", tmp_path / "one")
    pool_share.to_folder(folder, tmp_path / "out")
    pool_share.from_folder(tmp_path / "out", tmp_path / "two")
    known = pool_subject.hues(folder)
    assert known["a jellyfish"]
    assert pool_subject.hues(tmp_path / "one") == pool_subject.hues(tmp_path / "two") == known
    (tmp_path / "out" / "subject.yaml").write_text("name: [")
    with pytest.raises(InputError, match=r"subject\.yaml"):
        pool_share.from_folder(tmp_path / "out", tmp_path / "three")
    assert not (tmp_path / "three").exists()


def test_other_programs_can_read_the_parquet(folder: Path, tmp_path: Path) -> None:
    pool_share.to_parquet(folder, tmp_path / "mine.parquet")
    table = pq.read_table(tmp_path / "mine.parquet")
    features = json.loads(table.schema.metadata[b"huggingface"])
    assert features["info"]["features"]["image"] == {"_type": "Image"}
    row = table.to_pylist()[0]
    assert row["image"]["bytes"].startswith(b"\x89PNG")
    assert (row["tier"], row["subject"]) == ("love", "a red dot")
    assert "createCanvas" in row["sketch"]


def test_the_data_set_credits_authors_and_shows_pictures(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pool_share.to_folder(folder, out)
    pool_share.write_viewer(out)
    readme = (out / "README.md").read_text()
    assert readme.startswith('---\nlicense: "cc0-1.0"\n')
    assert "Anna Artist (CC-BY-4.0)" in readme
    rows = [json.loads(line) for line in (out / "metadata.jsonl").read_text().splitlines()]
    assert rows[0]["file_name"] == "paintings/p_001.png"
    assert rows[1]["source_file"] is None
    same(pools.load(folder), pools.load(out))


def test_the_published_layout_becomes_a_pool(tmp_path: Path) -> None:
    source = tmp_path / "watercolour-reference-pool"
    (source / "images").mkdir(parents=True)
    (source / "sources").mkdir()
    rows: list[dict[str, object]] = []
    for number, tier in enumerate(("love", "okay"), 1):
        name = f"{tier}_{number}"
        (source / "images" / f"{name}.png").write_bytes(pool_ground.picture(number))
        (source / "sources" / f"{name}.js").write_text(pool_ground.SKETCH.format(number))
        row = {"file_name": f"images/{name}.png", "source_file": f"sources/{name}.js"}
        rows.append({**row, "tier": tier, "subject": "a hibiscus", "refinement_round": 2})
    (source / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert pool_share.from_folder(source, tmp_path / "mine") == 2
    love, okay = pools.load(tmp_path / "mine").references
    assert love.strength > okay.strength == 0
    assert pools.read_records(tmp_path / "mine")[0].round == 2


def test_a_path_that_leads_out_of_a_data_set_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "evil"
    source.mkdir()
    (tmp_path / "secret.png").write_bytes(pool_ground.picture(1))
    row = {"file_name": "../secret.png", "source_file": None, "tier": "love"}
    (source / "metadata.jsonl").write_text(json.dumps(row))
    with pytest.raises(InputError, match="leads out of the folder"):
        pool_share.from_folder(source, tmp_path / "mine")


@pytest.mark.parametrize(
    ("licence", "told"),
    [("own", "lets nobody publish it"), ("none", "is not known"), ("CC-BY-ND-4.0", "lets nobody")],
)
def test_what_may_not_be_published_is_not(licence: str, told: str, tmp_path: Path) -> None:
    folder = pool_ground.make(tmp_path / "mine", ["love", "okay"], licence=licence)
    with pytest.raises(InputError, match=told):
        pool_share.to_parquet(folder, tmp_path / "mine.parquet")
    assert not (tmp_path / "mine.parquet").exists()


def test_one_painting_that_may_not_be_published_is_named(folder: Path, tmp_path: Path) -> None:
    records = list(pools.read_records(folder))
    records[2] = records[2].model_copy(update={"licence": "own"})
    pool_build.write_records(folder, records)
    with pytest.raises(InputError, match="p_003: the licence 'own' lets nobody"):
        pool_share.to_folder(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("dear")
    with pytest.raises(InputError, match="there is something already"):
        pool_share.to_folder(folder, tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "dear"


def test_a_full_disk_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    for target in (tmp_path / "out", tmp_path / "mine.parquet"):
        share = pool_share.to_parquet if target.suffix else pool_share.to_folder
        with largest_file(150), pytest.raises(InfrastructureError) as caught:
            share(folder, target)
        assert caught.value.reason == Reason.DISK_FULL
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("data", [b"", b"PAR1 not really PAR1", b"<html>"])
def test_a_broken_file_is_no_pool(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(InputError, match="no pool can be read from it"):
        pool_share.from_parquet(tmp_path / "a.parquet", tmp_path / "mine")


def test_another_s_parquet_is_no_pool(tmp_path: Path) -> None:
    pq.write_table(pa.table({"image": [b""], "tier": ["love"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="was not written by watercolour pool publish"):
        pool_share.from_parquet(tmp_path / "a.parquet", tmp_path / "mine")


def test_a_parquet_whose_picture_was_swapped_is_refused(folder: Path, tmp_path: Path) -> None:
    pool_share.to_parquet(folder, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    rows = table.to_pylist()
    rows[0]["image"]["bytes"] = pool_ground.picture(9)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="SHA-256"):
        pool_share.from_parquet(tmp_path / "a.parquet", tmp_path / "back")
    assert not (tmp_path / "back").exists()


# The hub.


@pytest.mark.parametrize("name", ["hub:", "hub:mine", "hub:a/b/c", "hub:a/b@", "a/b"])
def test_a_name_that_is_no_data_set_s_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="names no data set of the hub"):
        pool_hub.parse(name)


def test_a_data_set_has_a_name_and_perhaps_a_revision() -> None:
    assert pool_hub.parse("hub:anna/jelly") == ("anna/jelly", None)
    assert pool_hub.parse("hub:anna/jelly@50da8bb") == ("anna/jelly", "50da8bb")


@pytest.mark.parametrize(
    "words",
    [("publish", "mine", "hub:anna/jelly"), ("fetch", "hub:anna/jelly", "back")],
    ids=["publish", "fetch"],
)
def test_a_hub_that_is_away_is_told_with_what_to_do(
    words: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    """The real huggingface_hub, and an address where nobody listens."""
    away = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_DISABLE_TELEMETRY": "1"}
    home = {"HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": "hf_test", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-m", "watercolour.cli", "pool", *words],
        cwd=tmp_path,
        env={**os.environ, **away, **home},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "hub:anna/jelly: the hub cannot be reached" in done.stderr
    assert "HF_ENDPOINT" in done.stderr
    assert "hf_test" not in done.stderr
    assert not (tmp_path / "back").exists()
