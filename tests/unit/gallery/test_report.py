from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.unit.gallery import fake_run

from watercolour.api import InputError, Rollout
from watercolour.gallery import figures, pictures, record, report, words
from watercolour.train import metrics, summary


class Page(HTMLParser):
    """What a test wants to know of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tiles: list[dict[str, str]] = []
        self.sources: list[str] = []
        self.text = ""
        self.data: dict[str, Any] = {}
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._inside = "data" if given.get("id") == "data" else tag
        if tag == "a" and "tile" in given.get("class", ""):
            self.tiles.append(given)
        if "src" in given:
            self.sources.append(given["src"])

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data = json.loads(data)
        elif self._inside not in ("style", "script"):
            self.text += data
        self._inside = self._inside if self._inside in ("style", "script") else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def page_of(folder: Path) -> Page:
    return Page(report.write(record.read(folder)).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_run.make(tmp_path_factory.mktemp("runs") / "whole", steps=10)


def test_every_rollout_has_a_tile_with_its_record(whole: Path) -> None:
    page = page_of(whole)
    shown = {int(tile["data-n"]) for tile in page.tiles}
    assert shown == set(range(80))
    assert len(page.data["rollouts"]) == 80


def test_the_page_needs_no_network(whole: Path) -> None:
    text = (whole / "report.html").read_text() if (whole / "report.html").exists() else ""
    page = page_of(whole)
    text = (whole / "report.html").read_text()
    assert page.sources
    assert all(source.startswith("data:image/webp;base64,") for source in page.sources)
    assert not re.search(r"https?://|@import|url\(", text)
    assert "default-src 'none'" in text


def test_full_size_paintings_are_relative_links_to_files(whole: Path) -> None:
    links = {tile["href"] for tile in page_of(whole).tiles} - {"#"}
    assert links
    assert all((whole / link).is_file() for link in links)


def test_tiles_of_a_step_are_in_order_of_reward(whole: Path) -> None:
    text = report.html(record.read(whole))
    step = text.split('id="step-9"')[1].split("</article>")[0]
    rewards = [float(value) for value in re.findall(r'caption">([\d.]+)<', step)]
    assert len(rewards) == 8
    assert rewards == sorted(rewards, reverse=True)


def test_thumbnails_are_loaded_lazily_and_steps_are_skipped_until_seen(whole: Path) -> None:
    text = report.html(record.read(whole))
    assert text.count("<img") == text.count('<img loading="lazy"')
    assert "content-visibility: auto" in text


def test_unscored_rollouts_are_dashes_and_never_zeros(tmp_path: Path) -> None:
    def change(rollout: Rollout) -> Rollout:
        return fake_run.unscored(rollout) if rollout.index == 1 else rollout

    folder = fake_run.make(tmp_path / "partly", change=change)
    page = page_of(folder)
    # Two of each step's eight, which is more than the alarm's limit: the means are of the others.
    assert "2 of 8" in page.text
    assert "More than 10% of a fifth are unscored" in page.text
    whole = page_of(fake_run.make(tmp_path / "whole"))
    assert "0 of 8" in whole.text
    assert "of a fifth are unscored" not in whole.text
    unscored = [r for r in page.data["rollouts"] if r["state"].startswith("unscored")]
    assert len(unscored) == 12
    assert all(r["reward"] is None and r["adjusted"] is None for r in unscored)
    assert "RendererUnavailable" in page.text
    text = report.html(record.read(folder))
    captions = [
        re.search(r'caption">(.*?)<', tile.split("</a>")[0])
        for tile in text.split('<a class="tile')[1:]
        if "unscored (" in tile.split("</a>")[0]
    ]
    assert {found[1] for found in captions if found} == {"–"}


def test_a_wholly_unscored_run_can_be_shown(tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "none", steps=3, change=fake_run.unscored)
    page = page_of(folder)
    assert "too few scored steps" in " ".join(page.text.split())
    assert "0.000" not in page.text


def test_a_partial_run_says_how_far_it_is(tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "part", steps=2, planned=20)
    assert "not finished: 2 of 20 steps" in page_of(folder).text


def test_a_single_step_is_shown_without_a_gain(tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "one", steps=1, planned=20)
    assert "nothing to compare" in page_of(folder).text


def test_a_truncated_parquet_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "torn", steps=4)
    torn = sorted((folder / "rollouts").iterdir())[1]
    torn.write_bytes(torn.read_bytes()[:200])
    page = page_of(folder)
    assert f"rollouts/{torn.name} could not be read" in page.text
    assert len(page.data["rollouts"]) == 24


def test_a_missing_painting_is_said_and_breaks_nothing(tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "lost", steps=2)
    for path in (*folder.rglob("*.png"), *folder.rglob("*.webp")):
        path.unlink()
    assert "missing file" in page_of(folder).text


def test_a_step_that_was_repeated_after_a_resume_counts_once(tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "again", steps=2)
    rollouts = folder / "rollouts"
    first = sorted(rollouts.iterdir())[0]
    (rollouts / "00000-again.parquet").write_bytes(first.read_bytes())
    assert len(record.read(folder).entries) == 16


def test_a_sketch_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!-- \"' \u2028"

    def change(rollout: Rollout) -> Rollout:
        return rollout.model_copy(update={"sketch": evil})

    folder = fake_run.make(tmp_path / "evil", steps=2, change=change)
    page = page_of(folder)
    assert page.data["sketches"] == [evil]
    assert "<script>alert" not in (folder / "report.html").read_text()


def test_a_completion_without_a_sketch_shows_the_completion(tmp_path: Path) -> None:
    def change(rollout: Rollout) -> Rollout:
        return rollout.model_copy(update={"sketch": None, "completion": "<html>no</html>"})

    page = page_of(fake_run.make(tmp_path / "html", steps=1, change=change))
    assert page.data["sketches"] == ["<html>no</html>"]
    assert not page.data["rollouts"][0]["extracted"]


@pytest.mark.parametrize(
    ("make", "said"),
    [(lambda path: None, "no such folder"), (lambda path: path.mkdir(), "no rollouts")],
)
def test_what_is_no_run_is_refused(tmp_path: Path, make: Any, said: str) -> None:
    make(tmp_path / "x")
    with pytest.raises(InputError, match=said) as caught:
        record.read(tmp_path / "x")
    assert caught.value.reason == "ArtifactsDamaged"


def test_the_strip_takes_the_median_and_not_the_best(whole: Path) -> None:
    found = record.read(whole)
    for cells in pictures.strip_cells(found).values():
        for cell in cells:
            assert cell.entry is not None
            rewards = sorted(
                entry.rollout.reward
                for entry in found.by_step()[cell.step]
                if entry.rollout.subject == cell.entry.rollout.subject
                and entry.rollout.gate_passed
                and entry.rollout.reward is not None
            )
            assert cell.entry.rollout.reward == rewards[(len(rewards) - 1) // 2]


def test_the_strip_runs_from_the_first_step_to_the_last(whole: Path) -> None:
    cells = pictures.strip_cells(record.read(whole), columns=3)
    assert sorted(cells) == sorted(fake_run.SUBJECTS)
    assert [cell.step for cell in cells["a peach hibiscus"]] == [0, 4, 8]


def test_a_step_that_admitted_nothing_is_an_empty_frame(tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "none", steps=2, change=fake_run.unscored)
    found = record.read(folder)
    assert all(c.entry is None for cells in pictures.strip_cells(found).values() for c in cells)
    assert isinstance(pictures.strip(found), Image.Image)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0 %"), (0.004, "<1 %"), (0.996, ">99 %"), (1.0, "100 %"), (0.5, "50 %")],
)
def test_shares_are_never_rounded_to_none_or_all(value: float | None, text: str) -> None:
    assert words.percent(value) == text


def test_first_and_last_fifth_are_those_of_the_summary(whole: Path) -> None:
    found = record.read(whole)
    shown = report.context(found)
    curve = [
        figures.step_figures(step, [entry.rollout for entry in entries])
        for step, entries in found.by_step().items()
    ]
    rows = [
        {
            "reward": point.reward,
            "reward_adjusted": point.adjusted,
            "gate_pass": point.gate_pass_rate,
            "pigment_share": point.pigment,
            "unscored": point.unscored_rate,
        }
        for point in curve
    ]
    for column, name in (
        ("reward", "reward"),
        ("reward_adjusted", "adjusted"),
        ("gate_pass", "gate"),
        ("pigment_share", "pigment"),
    ):
        ends = getattr(shown["first"], name), getattr(shown["last"], name)
        assert ends == pytest.approx(metrics.fifths(rows, column))


def test_the_subjects_colours_are_shown_by_subject_and_as_the_summary_has_them(whole: Path) -> None:
    found = record.read(whole)
    shown = {c.subject: (c.before, c.after) for c in report.context(found)["colours"]}
    lines = [
        {**entry.rollout.model_dump(), "gate_passed": entry.rollout.gate_passed}
        for entry in found.entries
    ]
    expected = summary.by_subject(lines, "pigment_share")
    # The first subject of the fake run has no colours of its own.
    assert set(shown) == set(fake_run.SUBJECTS[1:])
    for subject, ends in shown.items():
        assert ends == pytest.approx(tuple(expected[subject].values())), subject
    page = report.html(found)
    assert page.count("Pigment in the subject's colours") == 1
    assert page.count('class="line pigment"') == 1


def test_a_run_without_colours_shows_none(tmp_path: Path) -> None:
    def plain(rollout: Rollout) -> Rollout:
        return rollout.model_copy(update={"pigment_share": None})

    page = report.html(record.read(fake_run.make(tmp_path / "plain", change=plain)))
    assert "Pigment in the subject's colours" not in page


def troubled(folder: Path, ties: float, last: int) -> Path:
    """A run of 16 steps with an unfit judge; its tie rate stands in metrics.csv up to a step."""
    fake_run.make(folder, steps=16)
    lines = [f"{step},{ties if step <= last else 0.1}" for step in range(16)]
    (folder / "metrics.csv").write_text("\n".join(["step,judge_tie_rate", *lines]) + "\n")
    told = {"passed": False, "message": "2 of 4 references tied with themselves"}
    (folder / "selfcheck.json").write_text(json.dumps(told))
    return folder


def alarms_of(folder: Path) -> list[tuple[str, ...]]:
    text = report.html(record.read(folder))
    return re.findall(r"<li( class=\"past\")?><b>(.*?)</b><i>(.*?)</i><span>(.*?)</span>", text)


def test_alarms_say_when_they_stood_and_which_are_over(tmp_path: Path) -> None:
    standing = alarms_of(troubled(tmp_path / "standing", 0.8, 15))
    assert standing == [
        ("", "judge unfit", "at the start", "2 of 4 references tied with themselves."),
        ("", "tie rate", "steps 2–15", "80% of the comparisons are ties."),
    ]
    past, name, when, _ = alarms_of(troubled(tmp_path / "past", 0.8, 3))[1]
    assert (past, name) == (' class="past"', "tie rate")
    assert re.fullmatch(r"steps 2–\d+, over", when)
    assert alarms_of(fake_run.make(tmp_path / "sound", steps=6)) == []


def test_what_the_judge_does_beyond_its_limits_is_marked(whole: Path, tmp_path: Path) -> None:
    def marked(folder: Path) -> list[tuple[str, ...]]:
        text = report.html(record.read(folder))
        return re.findall(r"<tr class=\"beyond\"><th>(.*?)</th><td>(.*?)</td>", text)

    # Half of their votes are ties and three quarters of the answers name the first picture: both
    # are just allowed.
    assert marked(whole) == []

    def first(rollout: Rollout) -> Rollout:
        votes = [vote.model_copy(update={"second": "A", "value": 0.5}) for vote in rollout.votes]
        return rollout.model_copy(update={"votes": tuple(votes)})

    biased = fake_run.make(tmp_path / "biased", steps=4, change=first)
    assert marked(biased) == [
        ("Ties: the two orders disagree", "100 %"),
        ("Answers that name the first picture", "100 %"),
    ]


def test_the_curve_has_a_band_about_the_mean_of_the_steps_around(whole: Path) -> None:
    found = record.read(whole)
    steps = {n: [entry.rollout for entry in each] for n, each in found.by_step().items()}
    curve = figures.curve(steps)
    near = [figures.adjusted(r) for n in range(3, 8) for r in steps[n]]
    assert curve[5].around == pytest.approx(figures.mean(near))
    for point in curve:
        assert point.band is not None
        assert point.around is not None
        assert point.band.low <= point.around <= point.band.high
    text = report.html(found)
    assert text.count('class="area mean"') == 1
    assert 'class="line mean"' in text
