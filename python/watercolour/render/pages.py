"""What the browser is served: the warm page, the realm's document, and the one script it loads.

The files come from a socket of this process on the loopback address. The content security policy
allows the scripts below and nothing else; a sketch gets in as the text of a script element, never
as a part of an HTML document. (A nonce would be inherited by ``import()`` and let that through;
``unsafe-inline`` names no source, and evaluation of strings stays off.)
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from watercolour.render import vendor

HARNESS = Path(__file__).parent / "harness"

#: Longest request head that is read, in bytes; the browser's are a few hundred.
MAX_HEAD = 16_384


@dataclass(frozen=True)
class Reply:
    """One file as it is served."""

    body: bytes
    headers: tuple[tuple[str, str], ...]


def _harness(name: str) -> str:
    return (HARNESS / name).read_text(encoding="utf-8")


def harness_version() -> str:
    """Twelve hex digits over the harness's own files: they too can change a painting."""
    digest = hashlib.sha256()
    for name in ("prelude.js", "realm.js", "host.js"):
        digest.update(_harness(name).encode())
    return digest.hexdigest()[:12]


def realm_script(*, stock: bool = False) -> str:
    """The whole of a realm in one script: prelude, p5, p5.brush, harness.

    Args:
        stock: take p5.brush as published, without our patch (for comparisons).

    Raises:
        InfrastructureError: the libraries are not vendored.
    """
    brush = "p5.brush.stock.js" if stock else "p5.brush.js"
    parts = [
        _harness("prelude.js"),
        vendor.library("p5.min.js"),
        vendor.library(brush),
        _harness("realm.js"),
    ]
    return _ascii(";\n".join(parts))


def _ascii(script: str) -> str:
    """The same script with every other character escaped.

    p5 has some in identifiers, patterns and texts; without them V8 keeps the text in one byte a
    character instead of two. A character beyond the basic plane becomes its two surrogates.
    """
    units = struct.unpack(f"<{len(script.encode('utf-16-le')) // 2}H", script.encode("utf-16-le"))
    return "".join(chr(unit) if unit < 128 else f"\\u{unit:04x}" for unit in units)


def replies(origin: str, *, stock: bool = False) -> dict[str, Reply]:
    """Path to file, for the server at ``origin``.

    Raises:
        InfrastructureError: the libraries are not vendored.
    """
    script = realm_script(stock=stock).encode()
    path = f"/{hashlib.sha256(script).hexdigest()[:16]}.js"
    common = "default-src 'none'; base-uri 'none'; form-action 'none'"
    host = (
        "<!doctype html><meta charset=utf-8><title>watercolour</title>"
        "<body><script src=/host.js></script>"
    )
    realm = (
        "<!doctype html><meta charset=utf-8><title>realm</title>"
        f"<body><script src={path} crossorigin=anonymous></script>"
    )
    javascript = (
        ("Content-Type", "text/javascript; charset=utf-8"),
        ("Access-Control-Allow-Origin", "*"),
        ("Cache-Control", "max-age=31536000, immutable"),
    )
    html = ("Content-Type", "text/html; charset=utf-8")

    def policy(text: str) -> tuple[str, str]:
        return ("Content-Security-Policy", f"{common}; {text}")

    return {
        "/host": Reply(
            host.encode(), (html, policy("script-src 'self'; frame-src 'self'; connect-src 'none'"))
        ),
        "/host.js": Reply(_harness("host.js").encode(), javascript),
        "/realm": Reply(
            realm.encode(),
            (
                html,
                ("Cache-Control", "max-age=31536000, immutable"),
                policy(
                    f"script-src {origin}{path} 'unsafe-inline'; connect-src 'none'; "
                    "img-src data: blob:; style-src 'unsafe-inline'; sandbox allow-scripts"
                ),
            ),
        ),
        path: Reply(script, javascript),
    }


async def _answer(
    files: dict[str, Reply], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            method, _, rest = head.partition(b" ")
            path = rest.partition(b" ")[0].decode("latin-1")
            found = files.get(path) if method == b"GET" else None
            status, reply = ("200 OK", found) if found else ("404 Not Found", Reply(b"", ()))
            lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(reply.body)}"]
            lines += [f"{key}: {value}" for key, value in reply.headers]
            writer.write("\r\n".join([*lines, "", ""]).encode() + reply.body)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass  # The browser closes its connections when and how it likes.
    finally:
        writer.close()


@asynccontextmanager
async def served(*, stock: bool = False) -> AsyncIterator[str]:
    """Serve the files on a free loopback port while the block runs; yields the base URL.

    Raises:
        InfrastructureError: the libraries are not vendored.
    """
    files: dict[str, Reply] = {}
    server = await asyncio.start_server(
        lambda reader, writer: _answer(files, reader, writer), "127.0.0.1", 0, limit=MAX_HEAD
    )
    try:
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        files.update(replies(base, stock=stock))
        yield base
    finally:
        server.close()
