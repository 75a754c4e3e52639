"""From the files that a stage left in its folder to a manifest that says how they were built."""

from __future__ import annotations

import functools
import platform
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import mudg_core
from mudg_core.errors import DataError
from mudg_core.storage.manifest import BuildInfo, Facts, FileEntry, Manifest, Recipe, canonical
from mudg_core.storage.objects import sha256_of


def describe(recipe: Recipe, facts: Facts, folder: Path, seconds: float) -> Manifest:
    """The manifest of what a stage made, under an attempt of its own. Facts go into the digest, so they must
    have one spelling: NaN and arrays have none."""
    try:
        canonical(facts.facts)
    except (TypeError, ValueError) as error:
        what = f"the facts of the artifact are not JSON: {error}"
        raise DataError(
            what=what, where=str(recipe), fix="use finite plain numbers, text and lists"
        ) from error
    return Manifest(
        recipe=recipe,
        key=recipe.key,
        files=_file_entries(folder, facts.volatile, str(recipe)),
        facts=facts.facts,
        circumstances=build_info(uuid.uuid4().hex, seconds),
    )


def build_info(attempt: str, seconds: float) -> BuildInfo:
    return BuildInfo(
        attempt=attempt,
        created=now(),
        seconds=round(seconds, 3),
        mudg_version=mudg_core.__version__,
        code_version=_commit(),
        platform=platform.platform(),
    )


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _file_entries(folder: Path, volatile: frozenset[str], where: str) -> tuple[FileEntry, ...]:
    """All files below a folder, in order of their names."""
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    paths = {path.relative_to(folder).as_posix(): path for path in files}
    if not paths:
        fix = "an artifact needs at least one file"
        raise DataError(what="the stage left no files", where=where, fix=fix)
    if unknown := volatile - paths.keys():
        raise DataError(what=f"volatile files that do not exist: {sorted(unknown)}", where=where)
    return tuple(_file_entry(name, path, name in volatile, where) for name, path in sorted(paths.items()))


def _file_entry(name: str, path: Path, volatile: bool, where: str) -> FileEntry:
    if path.is_symlink() or not path.is_file():
        raise DataError(what=f"{name!r} is a link or a device, not a file", where=where)
    return FileEntry(name=name, size=path.stat().st_size, sha256=sha256_of(path), volatile=volatile)


@functools.cache
def _commit() -> str:
    """The commit of a source checkout, read from its files: workers often have no git command."""
    git = Path(mudg_core.__file__).resolve().parent.parent / ".git"
    with suppress(OSError, UnicodeDecodeError):
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head[:40]
        branch = head.removeprefix("ref: ")
        if (git / branch).is_file():
            return (git / branch).read_text().strip()[:40]
        lines = (git / "packed-refs").read_text().splitlines()
        return next((line[:40] for line in lines if line.endswith(f" {branch}")), "")
    return ""
