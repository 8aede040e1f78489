"""Listens where nobody has any business and writes down who comes. Runs as a process of its own.

``python canary.py LOG``: the first line of output names the port and tells whether it also answers
for names; every connection, datagram and question becomes a line of LOG, a JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

ANSWER = (
    b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 2\r\nConnection: close\r\n\r\nok"
)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, kind: str, log: Path) -> None:
        self._kind = kind
        self._log = log

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        note(self._log, self._kind, data)


def note(log: Path, kind: str, data: bytes) -> None:
    """One line, whole."""
    with log.open("a") as file:
        file.write(json.dumps({"kind": kind, "said": data[:200].decode("latin-1")}) + "\n")


async def main(log: Path) -> None:
    """Listen until stdin ends."""
    loop = asyncio.get_running_loop()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        note(log, "connection", b"")
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(2):
                note(log, "request", await reader.read(2000))
            writer.write(ANSWER)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(met, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await loop.create_datagram_endpoint(
        lambda: _Datagrams("datagram", log), local_addr=("127.0.0.1", port)
    )
    names = True
    try:
        await loop.create_datagram_endpoint(
            lambda: _Datagrams("name", log), local_addr=("127.0.0.1", 53)
        )
    except OSError:
        names = False
    sys.stdout.write(json.dumps({"port": port, "names": names}) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
