"""Class names from what users have already: a list, or a dataset as it is published.

*.txt                   one name a line (FGVC's variants.txt), or "n01440764 tench" (ImageNet's)
*.json                  CoOp's and Dassl's split_zhou_*.json: {"train": [[file, label, class], ...]}
a folder                one of these files in it, else folders CLASS/ or DOMAIN/CLASS/
"""

from __future__ import annotations

from pathlib import Path

from mudg_core.errors import InputError
from mudg_core.target.published import (
    FIX,
    Named,
    class_folders,
    find_split,
    parts_of,
    read_list,
    read_split,
    spaced,
)
from mudg_core.target.wordnet import NAMES, SOLUTION, by_number, numbered_folders

LISTS = (NAMES, "variants.txt", "data/variants.txt")


def class_names(path: str | Path) -> list[Named]:
    """Names in their published order (folders: sorted), each with its place; nothing is judged here."""
    path = Path(path).expanduser()
    if path.is_dir():
        return _of_folder(path)
    if not path.exists():
        raise InputError(what="classes_from: there is no such file or folder", where=str(path), fix=FIX)
    return _of_file(path)


def _of_file(path: Path) -> list[Named]:
    if path.suffix.lower() == ".json":
        return [(name, str(path)) for name in read_split(path).names]
    lines = read_list(path)
    return list(by_number(lines).values()) or lines


def _of_folder(root: Path) -> list[Named]:
    if split := find_split(root):
        return _of_file(split)
    if not (root / SOLUTION).is_file() and (numbered := numbered_folders(root)):
        return numbered.names
    for file in (root / name for name in LISTS):
        if file.is_file():
            return _of_file(file)
    every = (class_folders(part).values() for part in parts_of(root).values())
    found = {spaced(folder.name) for domains in every for folders in domains for folder in folders}
    return [(name, str(root)) for name in sorted(found)]
