"""Labelled images as users have them on disk; the layout is recognised, or named before the path.

Files lie behind a fence: lists of files come from strangers, and a link may lead anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal, NamedTuple, Protocol

from mudg_core.errors import InputError
from mudg_core.target.published import (
    FIX_NUMBERS,
    PLACES,
    SOLUTION,
    TESTED,
    Named,
    Split,
    class_folders,
    find_names,
    find_split,
    folder_names,
    is_image,
    numbered_folders,
    parts_of,
    read_list,
    read_split,
    spaced,
    subfolders,
)

Part = Literal["test", "train"]
SAMPLED = 16  # images of a split that show where all of them lie
MAX_PLACES = 1000


class LabelledFile(NamedTuple):
    """An image file, and the number of its class among the names of its layout."""

    domain: str
    number: int
    file: Path


class Layout(Protocol):
    """A dataset on disk. `tree` shows people what it looks like."""

    tree: ClassVar[str]

    @property
    def names(self) -> Sequence[str]: ...

    @classmethod
    def find(cls, path: Path) -> Layout | None:
        """The dataset at this path, or nothing if it is laid out in another way."""

    def images(self, part: Part) -> Iterator[LabelledFile]:
        """Domain by domain and always in the same order."""


class Fence:
    """Lets files through that lie in a folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.real = root, root.resolve()
        self._folders: set[Path] = set()

    def listed(self, place: Path, name: str) -> Path:
        """A file that a list names, relative to a place in the folder."""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise InputError(what=f"{name[:200]!r} leaves the folder of the dataset", where=str(self.root))
        return self.checked(place / path)

    def checked(self, file: Path) -> Path:
        """The same file, if it is one and neither it nor a folder above it is a link that leads outside."""
        if not file.is_file():
            fix = "complete your copy of the dataset"
            raise InputError(what="an image is missing", where=str(file), fix=fix)
        if file.parent not in self._folders:
            self._within(file.parent)
            self._folders.add(file.parent)
        if file.is_symlink():
            self._within(file)
        return file

    def _within(self, path: Path) -> None:
        if not path.resolve().is_relative_to(self.real):
            raise InputError(
                what="a link leads out of the folder of the dataset",
                where=str(path),
                fix="name the folder that it leads to, or copy what it leads to",
            )

    def in_folder(self, folder: Path) -> Iterator[Path]:
        """Image files of a folder, by name."""
        for name in sorted(path.name for path in folder.iterdir() if is_image(path.name)):
            if (folder / name).is_file():
                yield self.checked(folder / name)


def _no_training_part(root: Path, wanted: str) -> InputError:
    return InputError(
        what="the dataset has no labelled training images",
        where=str(root),
        fix=f"for few-shot figures put them where the layout has them: {wanted}",
    )


@dataclass(frozen=True)
class Zhou:
    """CoOp's and Dassl's splits: the images lie in a folder beside the split that has any name."""

    tree: ClassVar[str] = "split_zhou_NAME.json, and the images it lists in a folder beside it"
    split: Split

    @property
    def names(self) -> Sequence[str]:
        return self.split.names

    @classmethod
    def find(cls, path: Path) -> Zhou | None:
        file = find_split(path) if path.is_dir() else path if path.suffix.lower() == ".json" else None
        return cls(read_split(file)) if file else None

    def images(self, part: Part) -> Iterator[LabelledFile]:
        root, listed = self.split.file.absolute().parent, self.split.parts.get(part, [])
        if not listed and part == "train":
            raise _no_training_part(self.split.file, "the list `train` of the split")
        if not listed:
            raise InputError(what="the split has no test images", where=str(self.split.file))
        fence = Fence(root)
        place = _image_folder(root, [path for path, _ in listed])
        for path, label in listed:
            yield LabelledFile(root.name, label, fence.listed(place, path))


def _image_folder(root: Path, paths: Sequence[str]) -> Path:
    """The folder that most of a few images exist in: `images`, `jpg`, `2750`, whatever it is called. It lies
    one or two levels below the split, or is the split's own."""
    sample = [path for path in paths[:: max(len(paths) // SAMPLED, 1)] if ".." not in path]
    below = subfolders(root)
    deeper = (deep for folder in below for deep in subfolders(folder))
    places = islice((place for group in ([root], below, deeper) for place in group), MAX_PLACES)
    best, count = root, 0
    for place in places:
        here = sum((place / path.lstrip("/")).is_file() for path in sample)
        if here > count:
            best, count = place, here
        if sample and count == len(sample):
            break
    return best


@dataclass(frozen=True)
class Fgvc:
    """FGVC-Aircraft: lists of images with their variants ("1514522 707-320" a line)."""

    tree: ClassVar[str] = "images_variant_test.txt, variants.txt and images/*.jpg, also below data/"
    lists: ClassVar[Mapping[Part, tuple[str, ...]]] = {
        "test": ("images_variant_test.txt",),
        "train": ("images_variant_trainval.txt", "images_variant_train.txt"),
    }
    line: ClassVar[re.Pattern[str]] = re.compile(r"(\w+) +(.+)")
    root: Path
    data: Path
    names: Sequence[str]

    @classmethod
    def find(cls, path: Path) -> Fgvc | None:
        for data in (path, path / "data"):
            if any((data / name).is_file() for name in cls.lists["test"]):
                return cls(path, data, [name for name, _ in read_list(data / "variants.txt")])
        return None

    def images(self, part: Part) -> Iterator[LabelledFile]:
        file = next((file for name in self.lists[part] if (file := self.data / name).is_file()), None)
        if file is None:
            raise _no_training_part(self.data, self.lists["train"][0])
        fence, numbers = Fence(self.root), {name: number for number, name in enumerate(self.names)}
        for line, where in read_list(file):
            match = self.line.fullmatch(line)
            if match is None or match[2] not in numbers:
                raise InputError(what=f"neither number nor variant: {line[:80]!r}", where=where)
            image = fence.listed(self.data / "images", f"{match[1]}.jpg")
            yield LabelledFile(self.root.absolute().name, numbers[match[2]], image)


@dataclass(frozen=True)
class ImageNet:
    """ImageNet as it is handed out: an image's class is the first number of its line in the solution, and it
    lies in a flat val/ or in a folder of its class there."""

    tree: ClassVar[str] = (
        "classnames.txt, LOC_val_solution.csv and val/*.JPEG, also below ILSVRC/Data/CLS-LOC/"
    )
    header: ClassVar[str] = "ImageId,PredictionString"
    line: ClassVar[re.Pattern[str]] = re.compile(r"(\w+),(n\d{8})\b.*")
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

    def images(self, part: Part) -> Iterator[LabelledFile]:
        if part == "train":
            yield from _numbered_training(self.val, self.root, self.names)
            return
        fence, domain = Fence(self.root), self.root.absolute().name
        numbers = {number: place for place, number in enumerate(self.by_number)}
        for line, where in read_list(self.root / SOLUTION):
            if line == self.header:
                continue
            match = self.line.fullmatch(line)
            if match is None or match[2] not in numbers:
                raise InputError(what=f"not an image and its class: {line[:80]!r}", where=where)
            file, inside = f"{match[1]}.JPEG", self.val / match[2]
            place = inside if (inside / file).is_file() else self.val
            yield LabelledFile(domain, numbers[match[2]], fence.listed(place, file))


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
        numbered = numbered_folders(path) if path.is_dir() else None
        if numbered is None:
            return None
        return cls(path, numbered.place, [name for name, _ in numbered.names], numbered.folders)

    def images(self, part: Part) -> Iterator[LabelledFile]:
        if part == "train":
            yield from _numbered_training(self.place, self.root, self.names)
            return
        fence, domain = Fence(self.root), self.root.absolute().name
        for number, folder in enumerate(self.folders):
            for file in fence.in_folder(folder):
                yield LabelledFile(domain, number, file)


def _numbered_training(val: Path, root: Path, names: Sequence[str]) -> Iterator[LabelledFile]:
    """Folders in a `train` beside the images that are evaluated on."""
    train = val.absolute().parent / "train"
    numbered = numbered_folders(train, root) if train.is_dir() and train != val.absolute() else None
    if numbered is None:
        raise _no_training_part(root, f"{train}/n01440764/*")
    numbers, fence = {name: number for number, name in enumerate(names)}, Fence(train)
    for (name, _), folder in zip(numbered.names, numbered.folders, strict=True):
        for file in fence.in_folder(folder) if name in numbers else ():
            yield LabelledFile(root.absolute().name, numbers[name], file)


@dataclass(frozen=True)
class Folders:
    """Folders named as classes, or domains of them as in DomainBed."""

    tree: ClassVar[str] = "CLASS/*.jpg or DOMAIN/CLASS/*.jpg, also below train/ and test/"
    root: Path
    parts: Mapping[str, Path]
    names: Sequence[str]

    @classmethod
    def find(cls, path: Path) -> Folders | None:
        if not path.is_dir():
            return None
        parts = parts_of(path)
        beside = path.absolute().parent / "train"
        if path.absolute().name.lower() in TESTED and beside.is_dir():
            parts = {"train": beside, **parts}
        return cls(path, parts, folder_names(parts.values()))

    def images(self, part: Part) -> Iterator[LabelledFile]:
        if part not in self.parts:
            raise _no_training_part(self.root, "train/ beside test/")
        fence, numbers = Fence(self.parts[part]), {name: number for number, name in enumerate(self.names)}
        for domain, folders in class_folders(self.parts[part]).items():
            for folder in folders:
                for file in fence.in_folder(folder):
                    yield LabelledFile(
                        domain or self.root.absolute().name, numbers[spaced(folder.name)], file
                    )


# In the order in which they are tried: a folder of class folders is what remains.
LAYOUTS: dict[str, type[Layout]] = {
    "zhou": Zhou,
    "fgvc": Fgvc,
    "imagenet": ImageNet,
    "wordnet": Numbered,
    "folder": Folders,
}


def open_layout(location: str) -> Layout:
    """The dataset at `PATH`, or at `LAYOUT:PATH` where the folder could be read in two ways."""
    kind, _, path = location.partition(":")
    if kind not in LAYOUTS:
        kind, path = "", location
    root = Path(path).expanduser()
    if not root.exists():
        raise InputError(what="the evaluation folder does not exist", where=str(root), fix="check the path")
    for layout in [LAYOUTS[kind]] if kind else LAYOUTS.values():
        if dataset := layout.find(root):
            return dataset
    known = "; ".join(f"{name}: {layout.tree}" for name, layout in LAYOUTS.items())
    raise InputError(what="no labelled images are laid out like this", where=location, fix=f"use {known}")
