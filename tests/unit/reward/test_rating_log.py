"""What raters say: kept line by line, undone, resumed; never lost and never half-written."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.disk import largest_file
from tests.unit.reward import pool_ground

from watercolour import disk
from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.gallery import rating
from watercolour.reward import pool as pools
from watercolour.reward import pool_build, rating_book, rating_log
from watercolour.reward.rating_log import Rated, Undone


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pool_ground.make(tmp_path / "mine", ["okay", None, None, None])


def said(folder: Path, rater: str = "anna") -> dict[str, str]:
    acts = rating_log.read_all(folder).get(rater, [])
    return {name: act.said for name, act in rating_log.tiers(acts).items()}


def tier(folder: Path, name: str) -> str | None:
    return next(record.tier for record in pools.read_records(folder) if record.name == name)


def test_a_rating_is_kept_and_reaches_the_pool(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    assert said(folder) == {"p_002": "love"}
    assert tier(folder, "p_002") == "love"
    assert tier(folder, "p_003") is None


def test_the_last_word_counts(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    rating.rate(folder, "anna", "act-00002", "p_002", "meh")
    assert said(folder) == {"p_002": "meh"}
    assert tier(folder, "p_002") == "meh"


def test_undoing_goes_back_one_act_at_a_time_and_outlives_the_program(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    rating.rate(folder, "anna", "act-00002", "p_002", "meh")
    assert rating.undo(folder, "anna", "act-00003") == "p_002"
    assert tier(folder, "p_002") == "love"
    assert rating.undo(folder, "anna", "act-00004") == "p_002"
    assert said(folder) == {}
    assert tier(folder, "p_002") is None
    assert rating.undo(folder, "anna", "act-00005") is None


def test_undoing_gives_a_painting_back_what_it_had_before(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_001", "aside")
    assert pools.read_records(folder)[0].aside == rating_book.SET_ASIDE
    rating.undo(folder, "anna", "act-00002")
    assert pools.read_records(folder)[0].aside == ""
    assert tier(folder, "p_001") == "okay"


def test_one_rater_does_not_undo_another_s(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    assert rating.undo(folder, "ben", "act-00002") is None
    assert said(folder) == {"p_002": "love"}


def test_an_act_that_is_sent_twice_counts_once(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    rating.undo(folder, "anna", "act-00002")
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    rating.undo(folder, "anna", "act-00002")
    assert said(folder) == {}
    assert len(rating_log.path_of(folder, "anna").read_text().splitlines()) == 3


def test_two_raters_who_write_at_once_lose_nothing(folder: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from watercolour.gallery import rating\n"
        "folder, rater, tag = Path(sys.argv[1]), sys.argv[2], sys.argv[3]\n"
        "for n in range(20):\n"
        "    name = f'p_00{n % 4 + 1}'\n"
        "    rating.rate(folder, rater, f'{tag}-act-{n:04d}', name, ('love', 'meh')[n % 2])\n"
    )
    # Two windows of one rater, and another rater.
    whose = (("anna", "a"), ("anna", "b"), ("ben", "c"))
    running = [
        subprocess.Popen([sys.executable, "-c", script, folder, rater, tag]) for rater, tag in whose
    ]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    acts = rating_log.read_all(folder)
    assert len(acts["anna"]) == 40
    assert len(acts["ben"]) == 20
    assert all(record.tier in ("love", "meh") for record in pools.read_records(folder))


@pytest.mark.parametrize("held", [rating_book.LOCK, "ratings/anna.jsonl"])
def test_a_writer_waits_for_another(held: str, folder: Path) -> None:
    (folder / rating_log.FOLDER).mkdir()
    act = ("anna", "act-00001", "p_002", "love")
    with disk.locked(folder / held):
        writer = threading.Thread(target=rating.rate, args=(folder, *act))
        writer.start()
        # It cannot end before the lock is given back, however long one waits.
        writer.join(0.5)
        assert writer.is_alive()
        assert tier(folder, "p_002") is None
    writer.join(60)
    assert tier(folder, "p_002") == "love"


def test_a_full_disk_loses_no_rating_and_leaves_none_half_written(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    path = rating_log.path_of(folder, "anna")
    before, records = path.read_bytes(), (folder / pools.RECORDS).read_bytes()
    with (
        largest_file(len(before) + 40),
        pytest.raises(InfrastructureError) as caught,
    ):
        rating.rate(folder, "anna", "act-00002", "p_003", "meh")
    assert caught.value.reason == Reason.DISK_FULL
    assert path.read_bytes() == before
    assert (folder / pools.RECORDS).read_bytes() == records
    rating.rate(folder, "anna", "act-00002", "p_003", "meh")
    assert said(folder) == {"p_002": "love", "p_003": "meh"}


def test_a_rating_that_was_saved_reaches_the_pool_once_there_is_room_again(folder: Path) -> None:
    """The log had room, paintings.json had not: the page sends the same act again."""
    act = Rated(id="act-00001", at="2026", name="p_002", key=_key(folder), said="love")
    rating_log.append(folder, "anna", act)
    assert tier(folder, "p_002") is None
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    assert tier(folder, "p_002") == "love"
    assert said(folder) == {"p_002": "love"}


def _key(folder: Path) -> str:
    return rating_log.key(pools.read_records(folder)[1])


def test_a_line_that_a_crash_left_half_written_is_no_rating(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    path = rating_log.path_of(folder, "anna")
    with path.open("ab") as file:
        file.write(b'{"kind":"tier","id":"act-0')
    assert said(folder) == {"p_002": "love"}
    rating.rate(folder, "anna", "act-00002", "p_003", "meh")
    assert said(folder) == {"p_002": "love", "p_003": "meh"}


def test_ratings_of_another_pool_are_refused(folder: Path, tmp_path: Path) -> None:
    other = pool_ground.make(tmp_path / "other", [None, None], name="theirs")
    rating.rate(other, "anna", "act-00001", "p_001", "love")
    target = rating_log.path_of(folder, "anna")
    target.parent.mkdir()
    target.write_bytes(rating_log.path_of(other, "anna").read_bytes())
    with pytest.raises(InputError, match=r"anna\.jsonl: these are ratings of the pool 'theirs'"):
        rating_log.read_all(folder)


def test_ratings_of_a_namesake_with_other_paintings_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    other = pool_ground.make(tmp_path / "other", [None] * 9)
    rating.rate(other, "anna", "act-00001", "p_009", "love")
    target = rating_log.path_of(folder, "anna")
    target.parent.mkdir()
    target.write_bytes(rating_log.path_of(other, "anna").read_bytes())
    with pytest.raises(InputError, match="none of the paintings that it rates is in the pool"):
        rating_log.read_all(folder)


def test_a_painting_that_was_redrawn_has_no_rating_any_more(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    rating.rate(folder, "anna", "act-00002", "p_003", "love")
    records = list(pools.read_records(folder))
    records[1] = records[1].model_copy(update={"sketch_sha256": "0" * 64})
    pool_build.write_records(folder, records)
    assert said(folder) == {"p_003": "love"}


def test_a_broken_line_is_named(folder: Path) -> None:
    rating.rate(folder, "anna", "act-00001", "p_002", "love")
    path = rating_log.path_of(folder, "anna")
    path.write_text(path.read_text().replace('"said":"love"', '"said":"wow"'))
    with pytest.raises(InputError, match=r"anna\.jsonl: line 2: "):
        rating_log.read_all(folder)


@pytest.mark.parametrize("name", ["", "../evil", "a b", "é", "x" * 33, "-dash"])
def test_a_name_that_is_no_file_s_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is no name for a rater"):
        rating_log.checked_rater(name)
    assert rating_log.checked_rater(" Anna ") == "anna"


def test_undoing_what_was_undone_changes_nothing() -> None:
    rated = Rated(id="act-00001", at="", name="p", key="k", said="love")
    undone = Undone(id="act-00002", at="", undoes="act-00001")
    assert rating_log.active([rated, undone, undone]) == []
