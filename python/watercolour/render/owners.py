"""Whether what a process has made still has its owner: it holds a lock that no death can keep."""

from __future__ import annotations

import fcntl
import os


def gone(file: int) -> bool:
    """Whether nobody holds the lock on an open file, which is closed.

    The kernel takes a lock away when its owner ends, in whatever way. Where the lock cannot be
    asked for, an owner is taken to be there.

    Args:
        file: its descriptor.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(file)
