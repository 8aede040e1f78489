"""What the browser is served: the warm page, its script, and the libraries as a text.

The files come from a socket of this process on the loopback address. Realms are frames without
an address of their own, which inherit the page's content security policy; the libraries and the
sketch get into them as texts of script elements, never as parts of an HTML document.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from watercolour.render import hooks, vendor

HARNESS = Path(__file__).parent / "harness"

#: The harness' scripts that a realm runs before the libraries and after them, in order.
BEFORE = ("prelude.js", "instant.js", "clock.js", "faults.js")
AFTER = ("bounds.js", "record.js", "realm.js")

#: Scripts of ours and inline ones, nothing else: no evaluation of strings, no connection, no frame
#: with an address elsewhere. (A nonce would be inherited by ``import()`` and let that through.)
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'none'; "
    "script-src 'self' 'unsafe-inline'; frame-src 'self'; "
    "img-src data: blob:; style-src 'unsafe-inline'"
)

#: The page's host: a name that nobody can own (RFC 6761). So its address need not be reachable by
#: number, and the page is no secure context, which lacks keys, storage and workers of services.
HOST = "page.invalid"

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
    for name in (*BEFORE, *AFTER, "host.js"):
        digest.update(_harness(name).encode())
    digest.update(repr(hooks.SEAMS).encode())
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
        *map(_harness, BEFORE),
        vendor.library("p5.min.js"),
        hooks.cut(vendor.library(brush)),
        *map(_harness, AFTER),
    ]
    return _ascii(";\n".join(parts) + "\n//# sourceURL=realm.js")


def _ascii(script: str) -> str:
    """The same script with every other character escaped.

    p5 has some in identifiers, patterns and texts; without them V8 keeps the text in one byte a
    character instead of two. A character beyond the basic plane becomes its two surrogates.
    """
    units = struct.unpack(f"<{len(script.encode('utf-16-le')) // 2}H", script.encode("utf-16-le"))
    return "".join(chr(unit) if unit < 128 else f"\\u{unit:04x}" for unit in units)


def replies(*, stock: bool = False) -> dict[str, Reply]:
    """Path to file.

    Args:
        stock: the set-up to compare with: p5.brush as published, in a frame that is shown.

    Raises:
        InfrastructureError: the libraries are not vendored.
    """
    host = (
        "<!doctype html><meta charset=utf-8><title>watercolour</title><body>"
        "<script src=/libraries.js></script><script src=/host.js></script>"
    )
    libraries = (
        f"const VISIBLE = {json.dumps(stock)};\n"
        f"const LIBRARIES = {json.dumps(realm_script(stock=stock))};\n"
    )
    html = ("Content-Type", "text/html; charset=utf-8")
    javascript = ("Content-Type", "text/javascript; charset=utf-8")
    return {
        "/host": Reply(host.encode(), (html, ("Content-Security-Policy", POLICY))),
        "/host.js": Reply(_harness("host.js").encode(), (javascript,)),
        "/libraries.js": Reply(libraries.encode(), (javascript,)),
    }


def only_way(base: str) -> tuple[str, ...]:
    """Flags for a browser that shall reach the files at ``base`` and nothing else.

    No policy of a page covers the connections that a browser makes ahead of time: to a frame's
    address, or for ``<link rel=preconnect>``. So no other name or number leads anywhere.
    """
    place = base.removeprefix("http://")
    port = place.partition(":")[2]
    return (
        f"--host-resolver-rules=MAP {place} 127.0.0.1:{port}, MAP * ~NOTFOUND",
        f"--proxy-bypass-list={HOST}",
    )


def nested_script() -> str:
    """What runs first in every frame that a sketch makes: it too has no clock and no chance."""
    body = ";\n".join(_harness(name) for name in BEFORE[:3])
    return (
        f"if (parent !== top) (() => {{\n{body};\n"
        "delete window.__watercolour;\ndelete window.__watercolourHooks;\n})();"
    )


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
    """Serve :func:`replies` on a free loopback port while the block runs; yields the base URL.

    Raises:
        InfrastructureError: the libraries are not vendored.
    """
    files = replies(stock=stock)
    server = await asyncio.start_server(
        lambda reader, writer: _answer(files, reader, writer), "127.0.0.1", 0, limit=MAX_HEAD
    )
    try:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
