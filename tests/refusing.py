"""Run a command under a kernel that refuses new namespaces: ``python refusing.py COMMAND…``.

A seccomp filter answers unshare(2) as the default profile of container runtimes does, for the
command and for whatever it starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
UNSHARE = {"x86_64": 272, "aarch64": 97}

#: Load the system call's number; if it is unshare's, fail with EPERM; else allow.
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ERRNO, ALLOW = 0x00050000, 0x7FFF0000


def refuse_unshare() -> None:
    """Install the filter for this process and its children."""
    number = UNSHARE[platform.machine()]
    program = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (LOAD, 0, 0, 0),
            (JUMP_IF_EQUAL, 0, 1, number),
            (RETURN, 0, 0, ERRNO | errno.EPERM),
            (RETURN, 0, 0, ALLOW),
        )
    )
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    refuse_unshare()
    os.execvp(sys.argv[1], sys.argv[1:])
