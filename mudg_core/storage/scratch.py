"""Folders for unfinished work: always removed, and swept later if their process died.

A folder is locked while it is in use. The kernel drops the lock of a dead process, so the sweep can tell a
build that takes two days from one that was killed two days ago.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STALE_SECONDS = 24 * 3600.0


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    folder = parent / f"build-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network disks cannot lock a folder; then nobody sweeps it either
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path, older_than: float = STALE_SECONDS) -> None:
    """Removes what dead processes left behind; never fails, for it is only housekeeping."""
    if not parent.is_dir():
        return
    for path in parent.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < older_than:
                continue
            if path.is_dir() and _in_use(path):
                continue
            _remove(path)


def _in_use(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
