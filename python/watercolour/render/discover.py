"""Who the renderers are, by the name of their headless Service."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from watercolour import logs
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

log = logs.get(__name__)

#: Port of a renderer, if none is named.
PORT = 8080

#: Seconds in which a name server has to answer.
LOOKUP_SECONDS = 5.0

#: Tells the base URLs of all renderers that there are; None when it cannot tell.
Find = Callable[[], Awaitable[frozenset[str] | None]]

#: What a resolver says of a name without an address: a Service without a ready pod.
_NOBODY = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


def parse(text: str) -> tuple[str, int]:
    """Host name and port of ``NAME[:PORT]``.

    Raises:
        InputError: it is not of that form.
    """
    name, colon, port = text.partition(":")
    if not name or (colon and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise InputError(
            Reason.INVALID_INPUT,
            f"--renderers-dns={text}: not a name, with or without a port.",
            remedy="Name the renderers' headless Service, such as peonies-renderers:8080.",
            field="renderers-dns",
            value=text,
        )
    return name, int(port) if colon else PORT


def by_dns(name: str, port: int) -> Find:
    """All addresses of a name. A headless Service has one for each of its ready pods."""

    async def find() -> frozenset[str] | None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in _NOBODY:
                return frozenset()
            log.warning("%s cannot be looked up: %s", name, error)
            return None
        except (OSError, TimeoutError) as error:
            log.warning("%s cannot be looked up: %s", name, str(error) or type(error).__name__)
            return None
        return frozenset(_url(str(address[0]), port) for *_, address in found)

    return find


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
