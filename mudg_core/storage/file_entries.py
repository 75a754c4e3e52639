"""From what a maker left in its folder to the entries of a manifest."""

from __future__ import annotations

from pathlib import Path

from mudg_core.errors import DataError
from mudg_core.storage.manifest import Facts, FileEntry, canonical
from mudg_core.storage.objects import sha256_of


def collect(folder: Path, volatile: frozenset[str], where: str) -> tuple[FileEntry, ...]:
    """All files below a folder, in order of their names."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not _is_folder(path)}
    if not paths:
        raise DataError(
            what="the stage left no files", where=where, fix="an artifact needs at least one file"
        )
    if unknown := volatile - paths.keys():
        raise DataError(what=f"volatile files that do not exist: {sorted(unknown)}", where=where)
    return tuple(_entry(name, path, name in volatile, where) for name, path in sorted(paths.items()))


def check_facts(facts: Facts, where: str) -> None:
    """Facts go into the digest, so they must have one spelling: NaN and arrays have none."""
    try:
        canonical(facts.facts)
    except (TypeError, ValueError) as error:
        what = f"the facts of the artifact are not JSON: {error}"
        raise DataError(what=what, where=where, fix="use finite plain numbers, text and lists") from error


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _entry(name: str, path: Path, volatile: bool, where: str) -> FileEntry:
    if path.is_symlink() or not path.is_file():
        raise DataError(what=f"{name!r} is a link or a device, not a file", where=where)
    return FileEntry(name=name, size=path.stat().st_size, sha256=sha256_of(path), volatile=volatile)
