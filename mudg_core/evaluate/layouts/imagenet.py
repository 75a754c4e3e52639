"""ImageNet as it is handed out (LOC_val_solution.csv and a flat val/), and class folders that are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mudg_core.errors import InputError
from mudg_core.evaluate.layouts.base import Fence, Found, Part, no_training_part
from mudg_core.target.published import (
    FIX_NUMBERS,
    PLACES,
    SOLUTION,
    Named,
    find_names,
    numbered_folders,
    read_list,
)

HEADER = "ImageId,PredictionString"
LINE = re.compile(r"(\w+),(n\d{8})\b.*")


@dataclass(frozen=True)
class ImageNet:
    """An image's class is the first number of its line; it lies in val/ or in a folder of its class there."""

    tree: ClassVar[str] = (
        "classnames.txt, LOC_val_solution.csv and val/*.JPEG, also below ILSVRC/Data/CLS-LOC/"
    )
    root: Path
    val: Path
    by_number: Mapping[str, Named]

    @property
    def names(self) -> Sequence[str]:
        return [name for name, _ in self.by_number.values()]

    @classmethod
    def find(cls, path: Path) -> ImageNet | None:
        if not (path / SOLUTION).is_file():
            return None
        val = next((place for name in PLACES if name and (place := path / name).is_dir()), path)
        if not (names := find_names(path, val)):
            raise InputError(
                what="nothing says what the classes are called", where=str(path), fix=FIX_NUMBERS
            )
        return cls(path, val, names)

    def images(self, part: Part) -> Iterator[Found]:
        if part == "train":
            yield from _training(self.val, self.root, self.names)
            return
        fence, domain = Fence(self.root), self.root.absolute().name
        numbers = {number: place for place, number in enumerate(self.by_number)}
        for line, where in read_list(self.root / SOLUTION):
            if line == HEADER:
                continue
            match = LINE.fullmatch(line)
            if match is None or match[2] not in numbers:
                raise InputError(what=f"not an image and its class: {line[:80]!r}", where=where)
            file, inside = f"{match[1]}.JPEG", self.val / match[2]
            place = inside if (inside / file).is_file() else self.val
            yield Found(domain, numbers[match[2]], fence.listed(place, file))


@dataclass(frozen=True)
class Numbered:
    """ImageNet-V2, -Sketch, -A and -R, and ImageNet's val/ where it is sorted into folders."""

    tree: ClassVar[str] = "folders n01440764/* (or 0/* to 999/*), and classnames.txt in it or beside it"
    root: Path
    place: Path
    names: Sequence[str]
    folders: Sequence[Path]

    @classmethod
    def find(cls, path: Path) -> Numbered | None:
        found = numbered_folders(path) if path.is_dir() else None
        if found is None:
            return None
        return cls(path, found.place, [name for name, _ in found.names], found.folders)

    def images(self, part: Part) -> Iterator[Found]:
        if part == "train":
            yield from _training(self.place, self.root, self.names)
            return
        fence, domain = Fence(self.root), self.root.absolute().name
        for number, folder in enumerate(self.folders):
            for file in fence.in_folder(folder):
                yield Found(domain, number, file)


def _training(val: Path, root: Path, names: Sequence[str]) -> Iterator[Found]:
    """Folders in a `train` beside the images that are evaluated on."""
    train = val.absolute().parent / "train"
    found = numbered_folders(train, root) if train.is_dir() and train != val.absolute() else None
    if found is None:
        raise no_training_part(root, f"{train}/n01440764/*")
    numbers, fence = {name: number for number, name in enumerate(names)}, Fence(train)
    for (name, _), folder in zip(found.names, found.folders, strict=True):
        for file in fence.in_folder(folder) if name in numbers else ():
            yield Found(root.absolute().name, numbers[name], file)
