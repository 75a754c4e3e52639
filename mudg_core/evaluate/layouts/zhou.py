"""CoOp's and Dassl's splits: a split_zhou_*.json, and images in a folder beside it that has any name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from mudg_core.errors import InputError
from mudg_core.evaluate.layouts.base import Fence, Found, Part, no_training_part
from mudg_core.target.published import Split, find_split, read_split, subfolders

LOOKED_FOR = 16  # images that tell where all of them lie
MAX_PLACES = 1000


@dataclass(frozen=True)
class Zhou:
    tree: ClassVar[str] = "split_zhou_NAME.json, and the images it lists in a folder beside it"
    split: Split

    @property
    def names(self) -> Sequence[str]:
        return self.split.names

    @classmethod
    def find(cls, path: Path) -> Zhou | None:
        file = find_split(path) if path.is_dir() else path if path.suffix.lower() == ".json" else None
        return cls(read_split(file)) if file else None

    def images(self, part: Part) -> Iterator[Found]:
        root, listed = self.split.file.absolute().parent, self.split.parts.get(part, [])
        if not listed:
            raise (
                no_training_part(self.split.file, "the list `train` of the split")
                if part == "train"
                else (InputError(what="the split has no test images", where=str(self.split.file)))
            )
        fence = Fence(root)
        place = _place(root, [path for path, _ in listed])
        for path, label in listed:
            yield Found(root.name, label, fence.listed(place, path))


def _place(root: Path, paths: Sequence[str]) -> Path:
    """The folder that most of a few images exist in: `images`, `jpg`, `2750`, whatever it is called. It lies
    one or two levels below the split, or is the split's own."""
    few = [path for path in paths[:: max(len(paths) // LOOKED_FOR, 1)] if ".." not in path]
    below = subfolders(root)
    deeper = (deep for folder in below for deep in subfolders(folder))
    places = islice((place for group in ([root], below, deeper) for place in group), MAX_PLACES)
    best, count = root, 0
    for place in places:
        here = sum((place / path.lstrip("/")).is_file() for path in few)
        if here > count:
            best, count = place, here
        if few and count == len(few):
            break
    return best
