"""What a renderer knows of its own isolation, and what it does where there can be none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from tests import refusing

from watercolour.render import isolation, verdict
from watercolour.render.isolation import OWN_BYTES, Isolation, memory

GIB = 2**30


@pytest.mark.parametrize(
    ("slots", "room", "bound"),
    [
        (1, None, 2 * GIB),
        (2, None, 3.25 * GIB),
        (2, 64 * GIB, 3.25 * GIB),
        (2, 2 * GIB, 2 * GIB - OWN_BYTES),
        (1, GIB // 4, GIB // 8),
    ],
)
def test_a_browser_meets_its_limit_before_its_container_does(
    slots: int, room: int | None, bound: float
) -> None:
    assert memory(slots, room) == bound


def test_prints_may_have_more_as_far_as_the_container_goes() -> None:
    assert memory(2, None, prints=True) == memory(2, None) + 2 * verdict.PRINT_BYTES
    assert memory(2, 2**30, prints=True) == memory(2, 2**30)


def test_more_slots_may_have_more() -> None:
    one, two = Isolation().of(1), Isolation().of(2)
    assert one.memory_bytes < two.memory_bytes
    assert one.processes < two.processes


@pytest.mark.parametrize(("on", "word"), [(True, "on"), (False, "off"), (None, "unknown")])
def test_the_sandbox_is_what_the_browser_has_shown(on: bool | None, word: str) -> None:
    known = Isolation("own", limits="cgroup").with_sandbox(on)
    assert known.details() == {
        "network": "own",
        "sandbox": word,
        "limits": "cgroup",
        "remarks": {},
    }
    assert known.layers() == {"network": True, "sandbox": on is True, "limits": True}


def test_what_does_not_hold_counts_as_nothing() -> None:
    assert set(Isolation().layers().values()) == {False}


ENTERS = """
import json, logging, os, sys
from watercolour.api.errors import InfrastructureError
from watercolour.render import isolation, verdict
logging.basicConfig(format="%(message)s")
try:
    found = isolation.enter(sys.argv[1])
except InfrastructureError as error:
    print(json.dumps({"reason": error.reason, "remedy": error.remedy}))
else:
    print(json.dumps(found.details() | {"net": os.readlink("/proc/self/ns/net")}))
"""


def entered(mode: str, *wrapper: str) -> tuple[dict[str, Any], str]:
    """What a process says that shuts itself in, and what it logs."""
    done = subprocess.run(
        [*wrapper, sys.executable, "-c", textwrap.dedent(ENTERS), mode],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout), done.stderr


REFUSING = (sys.executable, refusing.__file__)
HERE = os.readlink("/proc/self/ns/net")


def test_preferred_goes_on_without_a_network_namespace_and_says_so_once() -> None:
    details, logged = entered("Preferred", *REFUSING)
    assert (details["network"], details["net"]) == ("host", HERE)
    assert details["remarks"]["network"] == "Operation not permitted"
    assert logged.count("no network namespace (Operation not permitted)") == 1


def test_required_ends_without_one_and_says_what_to_do() -> None:
    told, _ = entered("Required", *REFUSING)
    assert told["reason"] == "NetworkNamespaceUnavailable"
    assert "Preferred" in told["remedy"]


def test_off_stays_where_it_is() -> None:
    details, _ = entered("Off")
    assert (details["network"], details["net"]) == ("host", HERE)
    assert details["remarks"]["network"] == "switched off"


@pytest.mark.skipif(
    subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode != 0,
    reason="needs network namespaces",
)
@pytest.mark.parametrize("mode", ["Required", "Preferred"])
def test_where_it_can_it_leaves_the_machines_network(mode: str) -> None:
    details, _ = entered(mode)
    assert details["network"] == "own"
    assert details["net"] != HERE
    assert "network" not in details["remarks"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes control groups")
def test_limits_without_control_groups_are_said_to_be_the_lesser_ones() -> None:
    hidden = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs t /sys/fs/cgroup && exec "$@"', "x")
    details, logged = entered("Off", *hidden)
    assert details["limits"] == "rlimits"
    assert details["remarks"]["limits"]
    assert logged.count("no control group for browsers") == 1


def test_nobody_else_makes_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = isolation.enter("Off")
    assert found.limits == "rlimits"
    assert found.parent is None
