"""The rating page's server: who may use it, what it answers, what it never does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.disk import largest_file
from tests.unit.reward import pool_ground

from watercolour.gallery import app as application
from watercolour.reward import pool as pools
from watercolour.reward import rating_log

TOKEN = "a-token-for-tests"
HOME = "http://127.0.0.1:8123"
RATE = "/api/rating/rate"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pool_ground.make(tmp_path / "mine", [None, None, None])


@pytest.fixture
def stranger(folder: Path) -> Iterator[TestClient]:
    app = application.create_app(folder, TOKEN, rater="anna")
    with TestClient(app, base_url=HOME, follow_redirects=False) as client:
        yield client


@pytest.fixture
def page(stranger: TestClient) -> TestClient:
    stranger.get(f"/rate?token={TOKEN}")
    return stranger


def act(**more: Any) -> dict[str, Any]:
    return {"rater": "anna", "id": "act-00001", "name": "p_001", "said": "love", **more}


def test_the_printed_address_lets_in_and_hides_the_token(stranger: TestClient) -> None:
    answer = stranger.get(f"/rate?token={TOKEN}&a=b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/rate?a=b"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/rate").status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/rate", "/site/rate.js", "/paintings/p_001.png", "/rate?token=wrong"]
)
def test_without_the_token_nothing_is_shown(path: str, stranger: TestClient) -> None:
    assert stranger.get(path).status_code == 403


def test_without_the_token_nothing_is_written(stranger: TestClient, folder: Path) -> None:
    assert stranger.post(RATE, json=act()).status_code == 403
    assert rating_log.read_all(folder) == {}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Host": "evil.example:8123"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_another_site_can_ask_for_nothing(
    headers: dict[str, str], status: int, page: TestClient, folder: Path
) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
    answer = page.post(RATE, json=act(), headers={"Cookie": cookie, **headers})
    assert answer.status_code == status
    assert rating_log.read_all(folder) == {}


def test_a_name_that_was_pointed_here_reads_nothing(page: TestClient) -> None:
    assert page.get("/rate", headers={"Host": "evil.example:8123"}).status_code == 421


def test_our_own_page_rates(page: TestClient, folder: Path) -> None:
    answer = page.post(RATE, json=act(), headers={"Origin": HOME, "Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 200
    assert answer.json()["rated"] == 1
    assert pools.read_records(folder)[0].tier == "love"


def test_every_answer_forbids_other_hosts(page: TestClient) -> None:
    for path in ("/rate", "/site/base.css", "/paintings/p_001.png", "/nothing"):
        policy = page.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy


def test_the_page_names_no_other_host() -> None:
    for path in application.SITE.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text, path.name


@pytest.mark.parametrize(
    "name", ["nobody", "..%2Fpool", "%2e%2e%2fpaintings%2fp_001", "p_001%00", "....//p_001"]
)
def test_only_paintings_of_the_pool_are_shown(name: str, page: TestClient) -> None:
    assert page.get(f"/paintings/{name}.png").status_code == 404
    assert page.get("/paintings/p_001.png").content == pool_ground.picture(1)


def test_a_picture_that_lies_in_the_folder_by_chance_is_not_shown(
    page: TestClient, folder: Path
) -> None:
    pools.painting_path(folder, "private").write_bytes(pool_ground.picture(2))
    assert page.get("/paintings/private.png").status_code == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"said": "wow"}, 422),
        ({"name": "nobody"}, 400),
        ({"rater": "../evil"}, 400),
        ({"rater": ""}, 400),
        ({"id": "x"}, 422),
        ({"extra": 1}, 422),
    ],
)
def test_what_cannot_be_saved_is_refused(
    change: dict[str, Any], status: int, page: TestClient, folder: Path
) -> None:
    assert page.post(RATE, json=act(**change)).status_code == status
    assert rating_log.read_all(folder) == {}


def test_a_full_disk_is_told_and_the_rating_can_be_sent_again(
    page: TestClient, folder: Path
) -> None:
    with largest_file(30):
        answer = page.post(RATE, json=act())
        assert answer.status_code == 507
        assert answer.json()["reason"] == "DiskFull"
        assert "Make room" in answer.json()["remedy"]
    assert page.post(RATE, json=act()).json()["rated"] == 1


def test_raters_and_their_agreement_are_shown(page: TestClient) -> None:
    for number, said in enumerate(("love", "okay", "meh"), 1):
        name = f"p_{number:03d}"
        page.post(RATE, json=act(id=f"anna-{number:04d}", name=name, said=said))
        one = act(id=f"ben-{number:05d}", rater="ben", name=name, said="love")
        page.post(RATE, json=one)
    state = page.post("/api/rating/state", json={"rater": "anna"}).json()
    assert [rater["name"] for rater in state["raters"]] == ["anna", "ben"]
    assert state["agreement"]["shared"] == 3
    assert state["agreement"]["alpha"] < 0.1
    assert [each["name"] for each in state["agreement"]["disputed"]] == ["p_003", "p_002"]
    assert state["agreement"]["disputed"][0]["said"] == {"anna": "meh", "ben": "love"}
    # Who has rated nothing learns how many are disputed, and neither which nor by whom.
    stranger = page.post("/api/rating/state", json={"rater": "clara"}).json()
    assert stranger["agreement"]["disputed"] == []
    assert stranger["agreement"]["disputes"] == 2
    again = page.post("/api/rating/state", json={"rater": "ben", "wanted": "p_003"}).json()
    assert again["item"]["name"] == "p_003"
    assert again["item"]["said"] == "love"
