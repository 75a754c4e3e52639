"""FGVC-Aircraft: images_variant_test.txt ("1514522 707-320" a line), variants.txt and images/."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mudg_core.errors import InputError
from mudg_core.evaluate.layouts.base import Fence, Found, Part, no_training_part
from mudg_core.target.published import read_list

LISTS: dict[Part, tuple[str, ...]] = {
    "test": ("images_variant_test.txt",),
    "train": ("images_variant_trainval.txt", "images_variant_train.txt"),
}
NAMES = "variants.txt"
LINE = re.compile(r"(\w+) +(.+)")


@dataclass(frozen=True)
class Fgvc:
    tree: ClassVar[str] = "images_variant_test.txt, variants.txt and images/*.jpg, also below data/"
    root: Path
    data: Path
    names: Sequence[str]

    @classmethod
    def find(cls, path: Path) -> Fgvc | None:
        for data in (path, path / "data"):
            if any((data / name).is_file() for name in LISTS["test"]):
                return cls(path, data, [name for name, _ in read_list(data / NAMES)])
        return None

    def images(self, part: Part) -> Iterator[Found]:
        file = next((file for name in LISTS[part] if (file := self.data / name).is_file()), None)
        if file is None:
            raise no_training_part(self.data, LISTS["train"][0])
        fence, numbers = Fence(self.root), {name: number for number, name in enumerate(self.names)}
        domain = self.root.absolute().name
        for line, where in read_list(file):
            match = LINE.fullmatch(line)
            if match is None or match[2] not in numbers:
                raise InputError(what=f"neither number nor variant: {line[:80]!r}", where=where)
            yield Found(domain, numbers[match[2]], fence.listed(self.data / "images", f"{match[1]}.jpg"))
