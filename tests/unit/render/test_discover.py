"""Who the renderers are, by name."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from watercolour.api.errors import InputError
from watercolour.render import discover


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("peonies-renderers", ("peonies-renderers", 8080)),
        ("peonies-renderers.art.svc:9000", ("peonies-renderers.art.svc", 9000)),
    ],
)
def test_a_name_may_have_a_port(text: str, name: tuple[str, int]) -> None:
    assert discover.parse(text) == name


@pytest.mark.parametrize("text", ["", ":8080", "name:", "name:http", "name:0", "name:99999"])
def test_what_is_no_name_is_said(text: str) -> None:
    with pytest.raises(InputError, match=f"--renderers-dns={text}"):
        discover.parse(text)


async def test_a_name_stands_for_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(name: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        assert (name, port) == ("renderers", 8080)
        plain = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [
            (*plain, ("10.0.0.1", 8080)),
            (*plain, ("10.0.0.2", 8080)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fd00::1", 8080, 0, 0)),
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", addresses)
    assert await discover.by_dns("renderers", 8080)() == {
        "http://10.0.0.1:8080",
        "http://10.0.0.2:8080",
        "http://[fd00::1]:8080",
    }


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), frozenset[str]()),
        (socket.gaierror(socket.EAI_NODATA, "no address"), frozenset[str]()),
        (socket.gaierror(socket.EAI_AGAIN, "server away"), None),
        (TimeoutError(), None),
    ],
)
async def test_nobody_is_not_the_same_as_not_known(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    found: frozenset[str] | None,
) -> None:
    async def fails(*_: Any, **__: Any) -> list[Any]:
        raise error

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", fails)
    assert await discover.by_dns("renderers", 8080)() == found
    # A time-out has no words of its own.
    said = [record.getMessage() for record in caplog.records]
    assert all(not message.endswith(": ") for message in said)
    assert bool(said) is (found is None)


async def test_a_real_resolver_knows_an_address() -> None:
    assert await discover.by_dns("127.0.0.1", 9)() == {"http://127.0.0.1:9"}
