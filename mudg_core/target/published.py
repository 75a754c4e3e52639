"""Datasets as they are published, on disk: one reader a format, for class names and for labelled images.

What a dataset's classes are called, and in which order they come, is decided here alone. So `classes_from`
and `evaluation` agree when they name the same folder.

*.txt        one name a line (FGVC's variants.txt), or "n01440764 tench" (ImageNet's)
*.json       CoOp's and Dassl's split_zhou_*.json: {"train": [[file, label, class], ...]}
a folder     one of these files in it, else folders CLASS/ or DOMAIN/CLASS/. Those of ImageNet and its
             relatives are WordNet numbers (n01440764) or class numbers (0 to 999): classnames.txt, in the
             folder or beside it, has their names
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mudg_core.errors import InputError
from mudg_core.target.class_names import name_key
from mudg_core.target.user_files import numbered_lines, parse_json, read_text

MAX_BYTES = 64 << 20
MAX_FOLDERS = 100_000
IMAGES = frozenset({".jpg", ".jpeg", ".png", ".webp"})
FIX = "give a list with one name a line, a split_zhou_*.json, or a folder CLASS/* or DOMAIN/CLASS/*"
PARTS = ("train", "val", "test")
TESTED = ("test", "val", "valid", "validation")  # names of the part that is evaluated on, the best first
NAMES = "classnames.txt"
SOLUTION = "LOC_val_solution.csv"  # of images that lie in no class folder
FIX_NUMBERS = 'put ImageNet\'s classnames.txt ("n01440764 tench" a line) into it or beside it'
LINE = re.compile(r"(n\d{8})\s+(.+)")
NUMBER = re.compile(r"n\d{8}")
INDEX = re.compile(r"\d{1,4}")
# Where the images to evaluate on lie below what people call their ImageNet folder.
PLACES = ("", "val", "images/val", "ILSVRC/Data/CLS-LOC/val", "Data/CLS-LOC/val", "images")
# The published list calls two pairs of classes the same; these are WordNet's own words for one of each.
WORDNET_NAMES = {"n04008634": "projectile", "n04355933": "sunglass"}
LISTS = (NAMES, "variants.txt", "data/variants.txt")
Named = tuple[str, str]  # a name, and where it stands


@dataclass(frozen=True)
class Split:
    """CoOp's and Dassl's split_zhou_*.json: the images of each part. The number of a class is its label."""

    file: Path
    names: list[str]
    parts: dict[str, list[tuple[str, int]]]


def find_split(root: Path) -> Path | None:
    files = sorted(root.glob("split_zhou_*.json"))
    if len(files) > 1:
        what = f"{len(files)} files split_zhou_*.json"
        raise InputError(what=what, where=str(root), fix="name one of them")
    return files[0] if files else None


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
    return list(numbered_lines(read_text(file, "list of classes", MAX_BYTES, FIX), str(file)))


def class_folders(root: Path) -> dict[str, list[Path]]:
    """Folders of classes by domain; those of CLASS/* have none. Whether folders are classes or domains is for
    most of them to say, as a stray picture may lie anywhere."""
    folders = subfolders(root)
    below = {folder: [inner for inner in subfolders(folder) if has_images(inner)] for folder in folders}
    domains = [folder for folder in folders if below[folder]]
    if domains and len(domains) >= sum(map(has_images, folders)):
        return {domain.name: below[domain] for domain in domains}
    return {"": folders}


def folder_names(roots: Iterable[Path]) -> list[str]:
    """The classes of several folders, sorted."""
    domains = (folders for root in roots for folders in class_folders(root).values())
    return sorted({spaced(folder.name) for folders in domains for folder in folders})


def parts_of(root: Path) -> dict[str, Path]:
    """Where the images are that are evaluated on (`test`) and, if the folder has them apart, trained on: in
    train/CLASS/* and test/CLASS/*. A class may be called `train` too, but then it holds images itself."""
    folders = {folder.name.lower(): folder for folder in subfolders(root)}
    tested = next((folders[name] for name in TESTED if name in folders), None)
    if tested is None or "train" not in folders or any(map(has_images, folders.values())):
        return {"test": root}
    return {"test": tested, "train": folders["train"]}


def subfolders(root: Path) -> list[Path]:
    """Without hidden ones. A folder may hold many thousands of files: these are not looked at one by one."""
    with os.scandir(root) as entries:
        every = (root / entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        folders = list(islice(every, MAX_FOLDERS + 1))
    if len(folders) > MAX_FOLDERS:
        raise InputError(what=f"more than {MAX_FOLDERS} folders", where=str(root), fix=FIX)
    return sorted(folders)


def has_images(folder: Path) -> bool:
    """Whether one of its first thousand files is one: enough to see what a folder holds."""
    with os.scandir(folder) as entries:
        return any(is_image(entry.name) for entry in islice(entries, 1000))


def is_image(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGES and not name.startswith(".")


def spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").split())


@dataclass(frozen=True)
class NumberedFolders:
    """Class folders in the order of the published list; classes without a folder are left out."""

    place: Path
    names: list[Named]
    folders: list[Path]


def by_number(lines: Sequence[Named]) -> dict[str, Named]:
    """WordNet number to (name, place), in order; empty unless every line has a number."""
    matches = [(match, place) for line, place in lines if (match := LINE.fullmatch(line))]
    if len(matches) < len(lines):
        return {}
    counts = Counter(name_key(match[2]) for match, _ in matches)
    names: dict[str, Named] = {}
    for match, place in matches:
        number, name = match.groups()
        if number in names:
            raise InputError(what=f"{number} is there already", where=place, fix="remove one of the two")
        names[number] = WORDNET_NAMES.get(number, name) if counts[name_key(name)] > 1 else name, place
    return names


def find_names(*near: Path) -> dict[str, Named]:
    """The first list of numbered names in or beside these folders, or in an `imagenet` beside them."""
    for folder in (path.absolute() for path in near):
        for place in (folder, folder.parent, folder.parent / "imagenet", folder.parent.parent / "imagenet"):
            if (place / NAMES).is_file() and (names := by_number(read_list(place / NAMES))):
                return names
    return {}


def numbered_folders(root: Path, *near: Path) -> NumberedFolders | None:
    """Class folders that are numbers, in the folder or where such folders have them. Nothing if there are
    none; plain numbers count only where a list (in it, beside it or near others) says what they mean."""
    for place in _places(root):
        folders = {folder.name: folder for folder in subfolders(place)}
        numbered = any(map(NUMBER.fullmatch, folders))
        if not numbered and not (folders and all(map(INDEX.fullmatch, folders))):
            continue
        names = find_names(place, root, *near)
        if numbered and not names:
            what = "folders are numbered as in WordNet, and nothing says what they are called"
            raise InputError(what=what, where=str(place), fix=FIX_NUMBERS)
        if not numbered and names:
            order = sorted(names)  # a class number counts the WordNet numbers in their order
            folders = {order[int(name)]: path for name, path in folders.items() if int(name) < len(order)}
        if names:
            return _in_order(place, folders, names)
    return None


def _places(root: Path) -> Iterator[Path]:
    """Known places first, then any folder below; training images last."""
    known = [place for name in PLACES if (place := root / name).is_dir()]
    others = sorted(subfolders(root), key=lambda folder: folder.name == "train")
    yield from dict.fromkeys([*known, *others])


def _in_order(place: Path, folders: dict[str, Path], names: dict[str, Named]) -> NumberedFolders:
    numbers = [number for number in names if number in folders]
    return NumberedFolders(place, [names[n] for n in numbers], [folders[n] for n in numbers])


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
    return [(name, str(root)) for name in folder_names(parts_of(root).values())]
