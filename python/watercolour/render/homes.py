"""A folder for each browser's files, and the removal of those that nobody lives in any more.

A renderer that is killed outright cannot clean up. So every folder holds a file that its owner
keeps locked; the kernel takes the lock away when the owner ends, in whatever way, and whoever gets
it then knows that the folder is abandoned.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from watercolour import logs
from watercolour.render import owners

log = logs.get(__name__)

PREFIX = "watercolour-browser-"
OWNER = "owner"


@contextmanager
def claimed(user: int | None) -> Generator[Path]:
    """A new folder for the length of the block.

    Args:
        user: id of the user and group who shall own it; None for this process's own.
    """
    home = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (home / f"{OWNER}.new").open("xb") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            # Named only now: who finds the file by its name finds it locked.
            (home / f"{OWNER}.new").rename(home / OWNER)
            if user is not None:
                os.chown(home, user, user)
            yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def sweep(folder: Path | None = None) -> list[Path]:
    """Remove the folders of owners that are no more; those that were removed.

    What holds no owner's file, or belongs to another user, is left alone.

    Args:
        folder: where to look; the folder for temporary files if None.
    """
    removed: list[Path] = []
    for home in sorted((folder or Path(tempfile.gettempdir())).glob(f"{PREFIX}*")):
        if home.is_symlink() or not _abandoned(home):
            continue
        shutil.rmtree(home, ignore_errors=True)
        removed.append(home)
    if removed:
        log.info("removed %d folders of browsers whose renderers were killed", len(removed))
    return removed


def _abandoned(home: Path) -> bool:
    try:
        file = os.open(home / OWNER, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    return owners.gone(file)
