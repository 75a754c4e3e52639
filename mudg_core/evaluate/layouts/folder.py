"""Folders named as classes: CLASS/*, DOMAIN/CLASS/* as in DomainBed, and either below train/ and test/."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mudg_core.evaluate.layouts.base import Fence, Found, Part, no_training_part
from mudg_core.target.published import TESTED, class_folders, parts_of, spaced


@dataclass(frozen=True)
class Folders:
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
        every = (class_folders(part).values() for part in parts.values())
        found = {spaced(folder.name) for domains in every for folders in domains for folder in folders}
        return cls(path, parts, sorted(found))

    def images(self, part: Part) -> Iterator[Found]:
        if part not in self.parts:
            raise no_training_part(self.root, "train/ beside test/")
        fence, numbers = Fence(self.parts[part]), {name: number for number, name in enumerate(self.names)}
        for domain, folders in class_folders(self.parts[part]).items():
            yield from _domain(domain or self.root.absolute().name, folders, numbers, fence)


def _domain(
    domain: str, folders: Sequence[Path], numbers: Mapping[str, int], fence: Fence
) -> Iterator[Found]:
    for folder in folders:
        for file in fence.in_folder(folder):
            yield Found(domain, numbers[spaced(folder.name)], file)
