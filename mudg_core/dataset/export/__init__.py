"""A training set in the layout that other tools read. Start reading at `export`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from mudg_core.dataset.export.card import card
from mudg_core.dataset.export.huggingface import write_huggingface
from mudg_core.dataset.export.imagefolder import write_imagefolder
from mudg_core.dataset.export.place import MARK, new_folder
from mudg_core.dataset.export.source import Source
from mudg_core.dataset.export.webdataset import write_webdataset
from mudg_core.settings import Json

__all__ = ["FORMATS", "Source", "export"]

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
    told = source.lineage | {"format": to, "images": source.size, "classes": len(source.classes)}
    with new_folder(out, force=force) as folder:
        FORMATS[to](source, folder)
        (folder / "README.md").write_text(card(source, to), encoding="utf-8")
        (folder / MARK).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return told
