"""A network of this process's own, in which there is nothing but a loopback.

A new network namespace holds no interface but its own ``lo``: whoever lives in it reaches nobody,
from the first instruction and whatever a cluster's network enforces. What was opened before stays
in the namespace it was opened in, so a socket that listens already goes on accepting.

A process that may not make one makes a user namespace first, which gives it that right
(user_namespaces(7)); the kernel refuses that to a process with threads.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

Mode = Literal["Required", "Preferred", "Off"]

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
#: ``struct ifreq``: a name and, of its union, the flags.
IFREQ = "16sH22x"
#: ``struct __user_cap_header_struct``, version 3, for this process; and no capability at all.
CAPABILITIES_OF_SELF, NONE = struct.pack("=Ii", 0x20080522, 0), bytes(24)

_LIBC = ctypes.CDLL(None, use_errno=True)


def enter(also: Iterable[int] = ()) -> str | None:
    """Move this process, which must have one thread only, into a network of its own for good.

    It is tried in a child first: a process that has come half-way cannot go back.

    Args:
        also: further user and group ids that this process, being root, will start children as.

    Returns:
        None when it is done, or why it is impossible.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        return "this process has several threads"
    refused = _tried(frozenset(also))
    if refused is None:
        _enter(frozenset(also))
    return refused


def _tried(also: frozenset[int]) -> str | None:
    """What stops a child of this process from entering; None if nothing does."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            _enter(also)
            code = 0
        except OSError as error:
            code = error.errno or 255
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        return f"the kernel ended the attempt with signal {-code}"
    if code == errno.ENOSPC:
        return "no further namespace may be made (/proc/sys/user/max_*_namespaces)"
    return os.strerror(code) if code else None


def _enter(also: frozenset[int]) -> None:
    """Enter.

    Raises:
        OSError: the kernel refuses a step.
    """
    try:
        _call("unshare", CLONE_NEWNET)
    except PermissionError:
        _enter_as_user(also)
    _raise_loopback()
    if os.geteuid() != 0:
        # A new user namespace gives every capability in it; that was the last use of them.
        _call("capset", CAPABILITIES_OF_SELF, NONE)


def _enter_as_user(also: frozenset[int]) -> None:
    """The same by way of a user namespace in which every id stays what it is.

    Only somebody who stays outside may map more ids than one, as root has to for the browser's.

    Raises:
        OSError: the kernel refuses a step.
    """
    user, group = os.geteuid(), os.getegid()
    maps = {
        "uid_map": _identity({user, *also} if user == 0 else {user}),
        "gid_map": _identity({group, *also} if user == 0 else {group}),
    }
    if user != 0:
        # Who may not change groups outside must give up changing them inside.
        maps = {"setgroups": "deny", **maps}
    told, tell = os.pipe()
    here = Path(f"/proc/{os.getpid()}")
    outside = os.fork()
    if outside == 0:
        code = 255
        try:
            os.close(tell)
            if os.read(told, 1):
                for name, text in maps.items():
                    _write(here / name, text)
            code = 0
        except OSError as error:
            code = error.errno or 255
        finally:
            os._exit(code)
    try:
        os.close(told)
        _call("unshare", CLONE_NEWUSER | CLONE_NEWNET)
        os.write(tell, b"!")
    finally:
        os.close(tell)
        code = os.waitstatus_to_exitcode(os.waitpid(outside, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


def _identity(ids: Iterable[int]) -> str:
    return "".join(f"{each} {each} 1\n" for each in sorted(ids))


def _write(path: Path, text: str) -> None:
    """In one piece, as the kernel wants it."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _raise_loopback() -> None:
    """Bring ``lo`` up.

    Raises:
        OSError: the kernel refuses.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as any_socket:
        asked = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack(IFREQ, b"lo", 0))
        flags = struct.unpack(IFREQ, asked)[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack(IFREQ, b"lo", flags | IFF_UP))


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library that returns 0 or fails.

    Raises:
        OSError: it failed.
    """
    if getattr(_LIBC, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
