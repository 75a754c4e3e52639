"""ImageNet and its relatives: class folders that are WordNet numbers (n01440764) or class numbers (0 to 999).

What they are called stands in ImageNet's classnames.txt ("n01440764 tench" a line), in the folder or
beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mudg_core.errors import InputError
from mudg_core.target.names import same
from mudg_core.target.published import Named, read_list, subfolders

NAMES = "classnames.txt"
SOLUTION = "LOC_val_solution.csv"  # of images that lie in no class folder
FIX = 'put ImageNet\'s classnames.txt ("n01440764 tench" a line) into it or beside it'
LINE = re.compile(r"(n\d{8})\s+(.+)")
NUMBER = re.compile(r"n\d{8}")
INDEX = re.compile(r"\d{1,4}")
# Where the images to evaluate on lie below what people call their ImageNet folder.
PLACES = ("", "val", "images/val", "ILSVRC/Data/CLS-LOC/val", "Data/CLS-LOC/val", "images")
# The published list calls two pairs of classes the same; these are WordNet's own words for one of each.
TOLD_APART = {"n04008634": "projectile", "n04355933": "sunglass"}


@dataclass(frozen=True)
class NumberedFolders:
    """Class folders in the order of the published list; classes without a folder are left out."""

    place: Path
    names: list[Named]
    folders: list[Path]


def by_number(lines: Sequence[Named]) -> dict[str, Named]:
    """WordNet number to (name, place), in order; empty unless every line has a number."""
    found = [LINE.fullmatch(line) for line, _ in lines]
    pairs = [(match, place) for match, (_, place) in zip(found, lines, strict=True) if match]
    if len(pairs) < len(lines):
        return {}
    often = Counter(same(match[2]) for match, _ in pairs)
    names: dict[str, Named] = {}
    for match, place in pairs:
        if match[1] in names:
            raise InputError(what=f"{match[1]} is there already", where=place, fix="remove one of the two")
        twin = often[same(match[2])] > 1
        names[match[1]] = TOLD_APART.get(match[1], match[2]) if twin else match[2], place
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
        found = {folder.name: folder for folder in subfolders(place)}
        if any(map(NUMBER.fullmatch, found)):
            return _named(place, found, _needed_names(place, root, *near))
        if found and all(map(INDEX.fullmatch, found)) and (names := find_names(place, root, *near)):
            order = sorted(names)  # a class number counts the WordNet numbers in their order
            known = {order[int(name)]: path for name, path in found.items() if int(name) < len(order)}
            return _named(place, known, names)
    return None


def _places(root: Path) -> Iterator[Path]:
    """Known places first, then any folder below; training images last."""
    known = [place for name in PLACES if (place := root / name).is_dir()]
    others = sorted(subfolders(root), key=lambda folder: folder.name == "train")
    yield from dict.fromkeys([*known, *others])


def _needed_names(*near: Path) -> dict[str, Named]:
    if names := find_names(*near):
        return names
    what = "folders are numbered as in WordNet, and nothing says what they are called"
    raise InputError(what=what, where=str(near[0]), fix=FIX)


def _named(place: Path, folders: dict[str, Path], names: dict[str, Named]) -> NumberedFolders:
    there = [number for number in names if number in folders]
    return NumberedFolders(place, [names[number] for number in there], [folders[number] for number in there])
