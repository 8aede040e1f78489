"""Posting over kept connections: what comes back, and what is no answer at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.serving import request, response

from watercolour.score.posting import Connections, PostFailed


class Server:
    """Reads requests and says what a test wants."""

    def __init__(self) -> None:
        self.says = response(b"200 OK", b"fine")
        self.hangs_up = False
        self.url = ""
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.requests.append(await request(reader))
                writer.write(self.says)
                await writer.drain()
                if self.hangs_up:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, Connections]]:
    one = Server()
    async with await asyncio.start_server(one.serve, "127.0.0.1", 0) as listening:
        one.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1/chat"
        to = Connections(one.url, {"Authorization": "Bearer secret"})
        yield one, to
        await to.aclose()


async def test_bodies_go_over_one_connection_with_the_headers(
    server: tuple[Server, Connections],
) -> None:
    seen, to = server
    replies = [await to.post(b"{}") for _ in range(3)]
    assert [(reply.status, reply.text) for reply in replies] == [(200, "fine")] * 3
    assert seen.connections == 1
    assert all(b"POST /v1/chat " in one and b"Bearer secret" in one for one in seen.requests)


async def test_calls_at_once_do_not_wait_for_one_another(
    server: tuple[Server, Connections],
) -> None:
    seen, to = server
    await asyncio.gather(*(to.post(b"{}") for _ in range(150)))
    assert seen.connections == 150


async def test_headers_are_found_in_any_case_and_no_redirect_is_followed(
    server: tuple[Server, Connections],
) -> None:
    seen, to = server
    seen.says = response(
        b"307 Temporary Redirect", b"\xff", b"retry-AFTER: 7\r\nLocation: http://127.0.0.1:9/\r\n"
    )
    reply = await to.post(b"{}")
    assert (reply.status, reply.headers.get("Retry-After"), reply.text) == (307, "7", "\ufffd")
    assert len(seen.requests) == 1


@pytest.mark.parametrize(
    "said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut"]
)
async def test_what_is_no_whole_answer_is_a_failure_and_the_next_call_goes_on(
    server: tuple[Server, Connections], said: bytes
) -> None:
    seen, to = server
    fine = seen.says
    seen.says, seen.hangs_up = said, True
    with pytest.raises(PostFailed):
        await to.post(b"{}")
    seen.says, seen.hangs_up = fine, False
    assert (await to.post(b"{}")).text == "fine"


async def test_nobody_there_and_an_impossible_header_are_failures(
    server: tuple[Server, Connections],
) -> None:
    away = Connections("http://127.0.0.1:9/v1", {})
    with pytest.raises(PostFailed, match=r"127\.0\.0\.1:9"):
        await away.post(b"{}")
    await away.aclose()
    odd = Connections(server[0].url, {"Authorization": "Bearer a\nb"})
    with pytest.raises(PostFailed):
        await odd.post(b"{}")
    await odd.aclose()
