"""Where an export goes: a folder that is there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mudg_core.errors import InputError
from mudg_core.storage.objects_local import disk_errors

MARK = "mudg.json"  # lineage, and the sign that a folder is an export and may be replaced by another


@contextmanager
def new_folder(out: Path, *, force: bool = False) -> Iterator[Path]:
    """A folder to write to, beside `out`, which it becomes at the end; after an error nothing is left.

    `force` replaces an earlier export, and nothing else: a mistyped path must not cost anybody's data.
    """
    out = out.expanduser().resolve()
    check_place(out, force=force)
    with disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as unfinished:
            made = Path(unfinished, "made")
            made.mkdir()
            yield made
            check_place(out, force=force)
            _swap(made, out, Path(unfinished, "old"))


def check_place(out: Path, *, force: bool = False) -> None:
    """Whether an export may go there; for those who find out before they begin."""
    out = out.expanduser().resolve()
    if out.exists() and not out.is_dir():
        raise InputError(what="the export would go where a file is", where=str(out), fix="name a folder")
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not force:
        raise InputError(
            what="the folder is not empty", where=str(out), fix="name a new one, or replace it with --force"
        )
    if not (out / MARK).is_file():
        raise InputError(
            what="--force replaces earlier exports only, and this folder is none",
            where=str(out),
            fix="name a new folder, or empty this one yourself",
        )


def _swap(made: Path, out: Path, old: Path) -> None:
    there = out.exists()
    if there:
        out.rename(old)
    try:
        made.rename(out)
    except OSError:
        if there:
            old.rename(out)
        raise
