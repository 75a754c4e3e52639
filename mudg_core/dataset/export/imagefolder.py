"""One folder a class, as torchvision's ImageFolder and most other tools read images.

Folders are named by number first, so that their order is that of the labels. A class without images has none:
readers refuse an empty folder. `classes.json` has the names as they are, of all classes.
"""

from __future__ import annotations

import json
from pathlib import Path

from mudg_core.dataset.export.source import Source
from mudg_core.dataset.export.tables import ProvenanceCsv
from mudg_core.target.spec import slug

CLASSES = "classes.json"
PROVENANCE = "provenance.csv"


def write_imagefolder(source: Source, out: Path) -> None:
    folders = [slug(name, label) for label, name in enumerate(source.classes)]
    write_classes(source, out)
    with ProvenanceCsv(out / PROVENANCE, source.classes) as table:
        for item in source.items():
            folder = out / folders[item.label]
            folder.mkdir(exist_ok=True)
            name = f"{item.row:09d}.{item.suffix}"
            (folder / name).write_bytes(item.image)
            table.add(f"{folder.name}/{name}", item)


def write_classes(source: Source, out: Path) -> None:
    names = {slug(name, label): name for label, name in enumerate(source.classes)}
    (out / CLASSES).write_text(json.dumps(names, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
