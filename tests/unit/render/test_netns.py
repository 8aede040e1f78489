"""A network of one's own, in real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap

import pytest
from tests import refusing

#: Whether a process of this user can have a network of its own here.
POSSIBLE = subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode == 0

needs_namespaces = pytest.mark.skipif(not POSSIBLE, reason="needs network namespaces")


def told(script: str, *wrapper: str) -> list[str]:
    """The lines that a process of this script writes."""
    # Codecs are loaded when first used, which may be after the right to read them was given up.
    start = "import encodings.idna, os, socket\nfrom watercolour.render import netns\n"
    command = [*wrapper, sys.executable, "-c", start + textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


#: Become nobody, if this is root; and be as any process is that was started by nobody.
UNPRIVILEGED = """
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    PR_SET_DUMPABLE = 4
    netns._LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
"""
ENTERED = """
print(netns.enter())
print([name for _, name in socket.if_nameindex()])
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname(), 5).close()
try:
    socket.create_connection(("192.0.2.1", 80), 5)
except OSError as error:
    print(error.strerror)
"""


@needs_namespaces
@pytest.mark.parametrize("who", ["", UNPRIVILEGED], ids=["as it is", "unprivileged"])
def test_there_is_a_loopback_and_nothing_else(who: str) -> None:
    assert told(who + ENTERED) == ["None", "['lo']", "Network is unreachable"]


@needs_namespaces
def test_what_listened_before_goes_on_accepting_from_outside() -> None:
    script = """
    import os, socket
    from watercolour.render import netns
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert netns.enter() is None
        print(server.getsockname()[1], flush=True)
        accepted, _ = server.accept()
        accepted.sendall(b"inside")
        accepted.close()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            assert client.recv(16) == b"inside"


@needs_namespaces
def test_a_user_keeps_his_ids_and_has_no_capability_left() -> None:
    ids, capabilities = told(
        UNPRIVILEGED
        + """
assert netns.enter() is None
print(os.getresuid() == (os.getuid(),) * 3, os.stat("/proc/self").st_uid == os.getuid())
with open("/proc/self/status") as status:
    print({line.split()[1] for line in status if line.startswith(("CapEff", "CapPrm", "CapInh"))})
"""
    )
    assert ids == "True True"
    assert capabilities == str({"0" * 16})


@pytest.mark.skipif(os.geteuid() != 0 or not POSSIBLE, reason="needs root")
def test_root_without_the_right_gets_it_by_a_user_namespace_and_can_still_become_nobody() -> None:
    lines = told(
        """
        print(netns.enter({65534}))
        print([name for _, name in socket.if_nameindex()])
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        print(os.getuid(), os.getgid())
        """,
        *("setpriv", "--bounding-set", "-sys_admin"),
    )
    assert lines == ["None", "['lo']", "65534 65534"]


WHY = """
before = os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/user")
print(netns.enter())
print(before == (os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/user")))
"""


def test_a_kernel_that_refuses_is_quoted_and_nothing_has_changed() -> None:
    refused = (sys.executable, refusing.__file__)
    assert told(WHY, *refused) == ["Operation not permitted", "True"]


@needs_namespaces
def test_half_a_way_is_not_gone() -> None:
    """Where loopback cannot be brought up, the process stays where it was."""
    broken = """
def refuse():
    raise PermissionError(1, "no")
netns._raise_loopback = refuse
"""
    assert told(broken + WHY) == ["Operation not permitted", "True"]


def test_a_process_with_threads_is_told_so() -> None:
    script = """
import threading
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
"""
    assert told(script + WHY + "stop.set()") == ["this process has several threads", "True"]
