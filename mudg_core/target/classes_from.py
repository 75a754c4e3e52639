"""Class names from what users have already: a list, or a dataset as it is published.

*.txt                   one name a line (FGVC's variants.txt), or "n01440764 tench" (ImageNet's)
*.json                  CoOp's and Dassl's split_zhou_*.json: {"train": [[file, label, class], ...]}
a folder                one of these files in it, else folders CLASS/ or DOMAIN/CLASS/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from mudg_core.errors import InputError
from mudg_core.target.text import listed, parse_json, read_text

MAX_BYTES = 64 << 20
MAX_FOLDERS = 100_000
LISTS = ("classnames.txt", "variants.txt", "data/variants.txt")
IMAGES = frozenset({".jpg", ".jpeg", ".png", ".webp"})
WNID = re.compile(r"(n\d{8})\s+(.+)")
FIX = "give a list with one name a line, a split_zhou_*.json, or a folder CLASS/* or DOMAIN/CLASS/*"
Named = tuple[str, str]  # a name, and where it stands


def class_names(path: str | Path) -> list[Named]:
    """Names in their published order (folders: sorted), each with its place; nothing is judged here."""
    path = Path(path).expanduser()
    if path.is_dir():
        return _of_folder(path)
    if not path.exists():
        raise InputError(what="classes_from: there is no such file or folder", where=str(path), fix=FIX)
    return _of_file(path)


def _of_file(path: Path, wnids: frozenset[str] = frozenset()) -> list[Named]:
    text = read_text(path, "list of classes", MAX_BYTES, FIX)
    if path.suffix.lower() == ".json":
        return _of_split(parse_json(text, str(path), FIX), str(path))
    found = list(listed(text, str(path)))
    numbered = [WNID.fullmatch(line) for line, _ in found]
    if not found or not all(numbered):
        return found
    pairs = zip(numbered, found, strict=True)
    return [(match[2], place) for match, (_, place) in pairs if match and (not wnids or match[1] in wnids)]


def _of_split(tree: Any, where: str) -> list[Named]:
    """CoOp's names have `_` for a space; the number of a class is its label."""
    names: dict[int, str] = {}
    for label, name in _labelled(tree, where):
        if names.setdefault(label, name) != name:
            raise InputError(what=f"label {label} has two classes: {names[label]!r}, {name!r}", where=where)
    if sorted(names) != list(range(len(names))):
        raise InputError(what="labels are not 0, 1, 2 and so on", where=where, fix=FIX)
    return [(_spaced(names[label]), where) for label in range(len(names))]


def _labelled(tree: Any, where: str) -> Iterator[tuple[int, str]]:
    parts = [tree.get(part, []) for part in ("train", "val", "test")] if isinstance(tree, dict) else [None]
    for item in (item for part in parts for item in (part if isinstance(part, list) else [None])):
        match item:
            case [str(), int(label), str(name)]:
                yield label, name
            case _:
                raise InputError(what="not lists of [file, label, class]", where=where, fix=FIX)


def _of_folder(root: Path) -> list[Named]:
    splits = sorted(root.glob("split_zhou_*.json"))
    if len(splits) > 1:
        what = f"{len(splits)} files split_zhou_*.json"
        raise InputError(what=what, where=str(root), fix="name one of them")
    folders = _folders(root)
    wnids = frozenset(folder.name for folder in folders if re.fullmatch(r"n\d{8}", folder.name))
    beside = [root.parent / "classnames.txt"] if wnids else []
    for file in (*splits, *(root / name for name in LISTS), *beside):
        if file.is_file():
            return _of_file(file, wnids)
    if wnids:
        raise InputError(
            what="folders are numbered as in WordNet, and nothing says what they are called",
            where=str(root),
            fix='put ImageNet\'s classnames.txt ("n01440764 tench" a line) into it or beside it',
        )
    found = folders if any(map(_has_images, folders)) else [c for domain in folders for c in _folders(domain)]
    return [(name, str(root)) for name in sorted({_spaced(folder.name) for folder in found})]


def _folders(root: Path) -> list[Path]:
    found = (path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    kept = list(islice(found, MAX_FOLDERS + 1))
    if len(kept) > MAX_FOLDERS:
        raise InputError(what=f"more than {MAX_FOLDERS} folders", where=str(root), fix=FIX)
    return sorted(kept)


def _has_images(folder: Path) -> bool:
    return any(path.suffix.lower() in IMAGES for path in _first(folder.iterdir()))


def _first(paths: Iterable[Path]) -> Iterable[Path]:
    """Enough to see what a folder holds."""
    return islice(paths, 1000)


def _spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
