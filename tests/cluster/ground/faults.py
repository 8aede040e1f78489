"""What the fault proxy can do to a call, which calls, and what it notes of each. No I/O."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass
class Call:
    """One call that reached the proxy, in the API server's own words."""

    number: int  # from 1, in order of arrival
    verb: str  # get list watch create update patch apply delete deletecollection
    group: str
    resource: str  # plural, in lower case; empty for paths that are no resource's
    subresource: str
    namespace: str
    name: str
    path: str
    body: bytes
    agent: str
    status: int | None = None  # what the client was told; None while open or when dropped
    fault: str = ""

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.verb not in {"get", "list", "watch"}

    def json(self) -> Json:
        """The body. Raises ValueError when it is not JSON."""
        return json.loads(self.body)


Matches = Callable[[Call], bool]


def calls(
    verb: str | tuple[str, ...] = (),
    resource: str = "",
    *,
    subresource: str | None = None,
    name: str = "",
    namespace: str = "",
) -> Matches:
    """Calls of these verbs, of this resource and so on; what is left out matches all.

    `resource="jobs"` matches jobs and their subresources, `subresource=""` the former alone.
    """
    verbs = (verb,) if isinstance(verb, str) else verb

    def matches(call: Call) -> bool:
        return (
            (not verbs or call.verb in verbs)
            and resource in {"", call.resource}
            and subresource in {None, call.subresource}
            and name in {"", call.name}
            and namespace in {"", call.namespace}
        )

    return matches


def all_but_watches(call: Call) -> bool:
    """Every call that is answered at once."""
    return call.verb != "watch"


# Faults. `after` means that the API server has executed the call by then and its answer is lost:
# the client cannot tell that from a call that never arrived.


@dataclass(frozen=True)
class Delay:
    """Wait `seconds` before the call is passed on, or before its answer is."""

    seconds: float
    after: bool = False


@dataclass(frozen=True)
class Drop:
    """Close the connection without an answer."""

    after: bool = False


@dataclass(frozen=True)
class Answer:
    """Answer with this status in the API server's place; 429 and 503 may say when to come back."""

    status: int
    message: str = "injected by the test"
    retry_after: int | None = None
    after: bool = False


@dataclass(frozen=True)
class Hold:
    """Keep the call until the test releases it: it neither arrives nor fails, as in a time-out.

    With `after` the server has executed it, so a test may end the operator exactly between an
    effect and the operator's knowledge of it.
    """

    after: bool = False


@dataclass(frozen=True)
class Silence:
    """A watch stays open and delivers nothing more after `events` events."""

    events: int = 0


@dataclass(frozen=True)
class HangUp:
    """A watch's connection is cut after `events` events."""

    events: int = 0


@dataclass(frozen=True)
class Expire:
    """A watch says 410 Gone after `events` events, and ends."""

    events: int = 0


@dataclass(frozen=True)
class Replay:
    """After `events` events a watch delivers the first of them once more, old version and all."""

    events: int = 1


WatchFault = Silence | HangUp | Expire | Replay
Fault = Delay | Drop | Answer | Hold | WatchFault


@dataclass
class Rule:
    """A fault for matching calls number `at` to `at + times - 1`; `times` None: for all later."""

    fault: Fault
    matches: Matches
    at: int
    times: int | None
    seen: int = 0
    hits: int = 0
    _struck: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def takes(self, call: Call) -> bool:
        """Count a call, and say whether the fault strikes it."""
        if not self.matches(call):
            return False
        self.seen += 1
        return self.seen >= self.at and (self.times is None or self.seen < self.at + self.times)

    def strike(self) -> None:
        """Note that the fault has taken effect."""
        self.hits += 1
        self._struck.set()

    def wait(self, timeout: float = 30.0) -> None:
        """Return once the fault has struck. Raises AssertionError after `timeout` seconds."""
        assert self._struck.wait(timeout), f"{self.fault} struck no call within {timeout:g} s"

    def release(self) -> None:
        """Let held calls go on."""
        self.released.set()


_RESOURCE = re.compile(
    r"^/(?:api/(?P<core>[^/]+)|apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>.+))?$"
)
# Subresources of a namespace itself would be read as resources in it.
_OF_NAMESPACES = {"status", "finalize"}


def parse(
    number: int,
    method: str,
    path: str,
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
) -> Call:
    """Read a call as the API server does. `headers` have keys in lower case."""
    found = _RESOURCE.match(path.rstrip("/"))
    parts = {key: value or "" for key, value in found.groupdict().items()} if found else {}
    if parts.get("resource") in _OF_NAMESPACES and parts["namespace"]:
        parts |= {
            "subresource": parts["resource"],
            "resource": "namespaces",
            "name": parts["namespace"],
        }
    name = parts.get("name", "")
    return Call(
        number=number,
        verb=_verb(method, name, query, headers),
        group=parts.get("group", ""),
        resource=parts.get("resource", ""),
        subresource=parts.get("subresource", ""),
        namespace=parts.get("namespace", ""),
        name=name,
        path=path,
        body=body,
        agent=headers.get("user-agent", ""),
    )


def _verb(method: str, name: str, query: dict[str, str], headers: dict[str, str]) -> str:
    match method:
        case "GET" if query.get("watch", "").lower() in {"1", "true"}:
            return "watch"
        case "GET":
            return "get" if name else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "PATCH":
            applies = headers.get("content-type", "").startswith("application/apply-patch")
            return "apply" if applies else "patch"
        case "DELETE":
            return "delete" if name else "deletecollection"
        case _:
            return method.lower()


def status_object(code: int, message: str, retry_after: int | None = None) -> Json:
    """A Status object as the API server sends it with an error."""
    details = {} if retry_after is None else {"details": {"retryAfterSeconds": retry_after}}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS.get(code, ""),
        "code": code,
        **details,
    }
