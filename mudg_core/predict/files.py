"""Which files to classify: files by name, folders with all that is below them, patterns, and lists.

One name is in memory at a time (of a folder: the names in it), so that a million images are no more work to
list than ten.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from mudg_core.corpus.decode import DEFAULT_LIMITS, TOO_MANY_BYTES, Limits, Refused

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp"})
LIST = "-"
NOT_THERE = "file: not there"
NO_FILE = "file: not a file"
UNREADABLE = "file: cannot be read"


def image_files(words: Iterable[str], listed: Iterable[str] = ()) -> Iterator[Path]:
    """Files in the order that they were named; those of a folder by name, its own before those below it.

    A folder gives what is called like an image; a file that is named itself is taken whatever it is called.
    `-` stands for `listed`, one name a line.
    """
    for word in words:
        if word == LIST:
            lines = (line.rstrip("\r\n") for line in listed)
            yield from (file for line in lines if line for file in _files_of(line))
        else:
            yield from _files_of(word)


def _files_of(word: str) -> Iterator[Path]:
    path = Path(word)
    if path.is_dir():
        yield from _below(path)
    elif path.exists() or not any(letter in word for letter in "*?["):
        yield path
    else:
        yield from _matching(path)


def _matching(pattern: Path) -> Iterator[Path]:
    """Files that match a pattern (`**` is any folders). One without a match comes out as it is, to be
    reported as not there like any other name that leads nowhere."""
    root = Path(pattern.anchor)
    try:
        matches = sorted(path for path in root.glob(str(pattern.relative_to(root))) if not path.is_dir())
    except ValueError:  # of patterns that make no sense
        matches = []
    yield from matches or [pattern]


def _below(folder: Path) -> Iterator[Path]:
    """No link to a folder is followed: it may lead back up. One that cannot be listed comes out itself."""
    closed: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=closed.append):
        folders.sort()
        yield from (Path(root, name) for name in sorted(names) if Path(name).suffix.lower() in SUFFIXES)
    yield from (Path(os.fsdecode(error.filename)) for error in closed)


def read_image(path: Path, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The bytes of a file, or `Refused`: a pipe would be waited for, and a huge file would fill memory."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise Refused(UNREADABLE if stat.S_ISDIR(info.st_mode) else NO_FILE)
        if info.st_size > limits.max_bytes:
            raise Refused(TOO_MANY_BYTES)
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Refused(NOT_THERE) from error
    except (OSError, ValueError) as error:  # the latter: a NUL in a name
        raise Refused(UNREADABLE) from error
