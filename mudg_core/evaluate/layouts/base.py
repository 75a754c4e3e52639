"""What every layout of labelled images has in common, and the fence around their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal, NamedTuple, Protocol

from mudg_core.errors import InputError
from mudg_core.target.published import is_image

Part = Literal["test", "train"]


class Found(NamedTuple):
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

    def images(self, part: Part) -> Iterator[Found]:
        """Domain by domain and always in the same order."""


class Fence:
    """Lets files through that lie in a folder. Lists come from strangers, and a link may lead anywhere."""

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
            raise InputError(
                what="an image is missing", where=str(file), fix="complete your copy of the dataset"
            )
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


def no_training_part(root: Path, wanted: str) -> InputError:
    return InputError(
        what="the dataset has no labelled training images",
        where=str(root),
        fix=f"for few-shot figures put them where the layout has them: {wanted}",
    )
