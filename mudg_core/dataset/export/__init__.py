"""A training set in the layout that other tools read. Start reading at `export`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mudg_core.dataset.export.card import card
from mudg_core.dataset.export.formats import write_huggingface, write_imagefolder, write_webdataset
from mudg_core.dataset.export.source import Source
from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.storage.objects_local import disk_errors

__all__ = ["FORMATS", "MARK", "Source", "check_place", "export", "new_folder"]

MARK = "mudg.json"  # lineage, and the sign that a folder is an export and may be replaced by another
FORMATS: dict[str, Callable[[Source, Path], None]] = {
    "imagefolder": write_imagefolder,
    "huggingface": write_huggingface,
    "webdataset": write_webdataset,
}


def export(source: Source, out: Path, to: str, *, force: bool = False) -> Json:
    """Writes the training set to `out`, all of it or nothing, and says what was written.

    One image is in memory at a time (a row group of them for parquet). Beside the images lie a README, and
    `mudg.json` with the same facts for programs.
    """
    facts = source.lineage | {"format": to, "images": source.size, "classes": len(source.classes)}
    with new_folder(out, force=force) as folder:
        FORMATS[to](source, folder)
        (folder / "README.md").write_text(card(source, to), encoding="utf-8")
        (folder / MARK).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


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
            folder = Path(unfinished, "new")
            folder.mkdir()
            yield folder
            check_place(out, force=force)
            _swap(folder, out, Path(unfinished, "old"))


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


def _swap(folder: Path, out: Path, old: Path) -> None:
    if replaced := out.exists():
        out.rename(old)
    try:
        folder.rename(out)
    except OSError:
        if replaced:
            old.rename(out)
        raise
