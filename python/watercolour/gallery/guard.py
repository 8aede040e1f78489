"""Who may use a page of this machine: whoever was given its address, from that page alone.

A server on the loopback is within reach of every site that the person has open, and of every user
of the machine. So three things are asked of a request. Its Host must be the loopback's own, or a
site whose name was pointed here could read (DNS rebinding). It must carry the token, which the
printed address holds and a cookie keeps. And what changes something must come from our own page.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import URL, Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SAFE = frozenset({"GET", "HEAD"})

#: Nothing is loaded from anywhere else, and no other page may frame this one.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


class Guard:
    """Wraps an application; see the module."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        """Ask for ``token``."""
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refusal, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self._refusal(scope) or self._entrance(scope)
        await (answer or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = urlsplit(f"//{headers.get('host', '')}")
        if _hostname(host.netloc) not in LOOPBACK:
            return PlainTextResponse("This page is for this machine alone.", 421)
        if scope["method"] in SAFE:
            return None
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != host.netloc
        if foreign or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return PlainTextResponse("Another site may not ask for this.", 403)
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return PlainTextResponse("Send application/json.", 415)
        return None

    def _entrance(self, scope: Scope) -> Response | None:
        """Let in whoever has the token; what comes in the address is moved into a cookie."""
        headers = Headers(scope=scope)
        # Cookies know no ports: two pools that are rated at once must not overwrite each other's.
        name = f"watercolour-{_port(headers.get('host', ''))}"
        query = QueryParams(scope["query_string"])
        given = query.get("token")
        if given is not None and scope["method"] in SAFE and self._is_token(given):
            rest = [(key, value) for key, value in query.multi_items() if key != "token"]
            url = URL(scope=scope).replace(query=urlencode(rest))
            # One slash: two would name another host.
            path = "/" + url.path.lstrip("/")
            answer = RedirectResponse(f"{path}{'?' + url.query if url.query else ''}", 303)
            answer.set_cookie(name, given, httponly=True, samesite="strict")
            return answer
        if self._is_token(cookie_parser(headers.get("cookie", "")).get(name, "")):
            return None
        return PlainTextResponse(
            "Open the whole address that the command has printed: it ends in a token.", 403
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _hostname(netloc: str) -> str:
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


def _port(host: str) -> int:
    try:
        return urlsplit(f"//{host}").port or 80
    except ValueError:
        return 80
