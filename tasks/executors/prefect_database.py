"""Empty databases for Prefect's server. Making one means hundreds of migrations, ten seconds of work before
the first task of a run; copying one that was made before means none. Kept per version of Prefect, in the
user's cache folder, where it may be deleted at any time.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4


def template() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mudg" / f"prefect-{version('prefect')}.db"


def lay_out(database: Path) -> bool:
    """Puts an empty database in place where there is none; says whether the server must make it itself."""
    if database.exists():
        return False
    try:
        _atomically(database, lambda new: shutil.copyfile(template(), new))
    except OSError:
        return True
    return False


def keep(database: Path) -> None:
    """Keeps a copy of a database that a server has just made. A cache that cannot be written is no error."""
    with suppress(OSError, sqlite3.Error):
        template().parent.mkdir(parents=True, exist_ok=True)
        _atomically(template(), lambda new: _copy(database, new))


def _copy(database: Path, new: Path) -> None:
    """By SQLite itself, as its server has it open."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(new)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")


def _atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Others may be at the same."""
    new = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        write(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
