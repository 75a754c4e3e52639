"""Datasets as they are published, on disk: one reader a format, for class names and for labelled images.

What a dataset's classes are called, and in which order they come, is decided here alone. So `classes_from`
and `evaluation` agree when they name the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mudg_core.errors import InputError
from mudg_core.target.text import listed, parse_json, read_text

MAX_BYTES = 64 << 20
MAX_FOLDERS = 100_000
IMAGES = frozenset({".jpg", ".jpeg", ".png", ".webp"})
FIX = "give a list with one name a line, a split_zhou_*.json, or a folder CLASS/* or DOMAIN/CLASS/*"
PARTS = ("train", "val", "test")
TESTED = ("test", "val", "valid", "validation")  # names of the part that is evaluated on, the best first
Named = tuple[str, str]  # a name, and where it stands


@dataclass(frozen=True)
class Split:
    """CoOp's and Dassl's split_zhou_*.json: who is in which part. The number of a class is its label."""

    file: Path
    names: list[str]
    parts: dict[str, list[tuple[str, int]]]


def find_split(root: Path) -> Path | None:
    found = sorted(root.glob("split_zhou_*.json"))
    if len(found) > 1:
        what = f"{len(found)} files split_zhou_*.json"
        raise InputError(what=what, where=str(root), fix="name one of them")
    return found[0] if found else None


def read_split(file: Path) -> Split:
    """{"train": [[file, label, class], ...], "val": ..., "test": ...}; names have `_` for a space."""
    tree, where = parse_json(read_text(file, "split", MAX_BYTES, FIX), str(file), FIX), str(file)
    names: dict[int, str] = {}
    parts: dict[str, list[tuple[str, int]]] = {}
    for part, path, label, name in _entries(tree, where):
        parts.setdefault(part, []).append((path, label))
        if names.setdefault(label, name) != name:
            raise InputError(what=f"label {label} has two classes: {names[label]!r}, {name!r}", where=where)
    if sorted(names) != list(range(len(names))):
        raise InputError(what="labels are not 0, 1, 2 and so on", where=where, fix=FIX)
    return Split(file, [spaced(names[label]) for label in range(len(names))], parts)


def _entries(tree: Any, where: str) -> Iterator[tuple[str, str, int, str]]:
    parts = [(part, tree.get(part, [])) for part in PARTS] if isinstance(tree, dict) else [("", None)]
    for part, items in parts:
        for item in items if isinstance(items, list) else [None]:
            match item:
                case [str(path), int(label), str(name)]:
                    yield part, path, label, name
                case _:
                    raise InputError(what="not lists of [file, label, class]", where=where, fix=FIX)


def read_list(file: Path) -> list[Named]:
    """One name a line, blank lines left out."""
    return list(listed(read_text(file, "list of classes", MAX_BYTES, FIX), str(file)))


def class_folders(root: Path) -> dict[str, list[Path]]:
    """Folders of classes by domain; those of CLASS/* have none. Whether folders are classes or domains is for
    most of them to say, as a stray picture may lie anywhere."""
    folders = subfolders(root)
    inside = {folder: [below for below in subfolders(folder) if has_images(below)] for folder in folders}
    domains = [folder for folder in folders if inside[folder]]
    if domains and len(domains) >= sum(map(has_images, folders)):
        return {domain.name: inside[domain] for domain in domains}
    return {"": folders}


def parts_of(root: Path) -> dict[str, Path]:
    """Where the images are that are evaluated on (`test`) and, if the folder has them apart, trained on: in
    train/CLASS/* and test/CLASS/*. A class may be called `train` too, but then it holds images itself."""
    found = {folder.name.lower(): folder for folder in subfolders(root)}
    tested = next((found[name] for name in TESTED if name in found), None)
    if tested is None or "train" not in found or any(map(has_images, found.values())):
        return {"test": root}
    return {"test": tested, "train": found["train"]}


def subfolders(root: Path) -> list[Path]:
    """Without hidden ones. A folder may hold many thousands of files: these are not looked at one by one."""
    with os.scandir(root) as entries:
        found = (root / entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        kept = list(islice(found, MAX_FOLDERS + 1))
    if len(kept) > MAX_FOLDERS:
        raise InputError(what=f"more than {MAX_FOLDERS} folders", where=str(root), fix=FIX)
    return sorted(kept)


def has_images(folder: Path) -> bool:
    """As its first thousand files tell: enough to see what a folder holds."""
    with os.scandir(folder) as entries:
        return any(is_image(entry.name) for entry in islice(entries, 1000))


def is_image(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGES and not name.startswith(".")


def spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
