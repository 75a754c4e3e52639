"""Paths in a spec, made to hold in any folder: workers have working folders of their own.

A relative one starts from the folder in which the command is typed, as other paths on a command line do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mudg_core.encode.weights import absolute as absolute_model
from mudg_core.encode.weights import absolute_path
from mudg_core.encode.weights import path_in as model_path
from mudg_core.settings import Json

LAYOUTS = ("zhou", "fgvc", "imagenet", "wordnet", "folder")  # before the path of evaluation images


def absolute_images(location: str) -> str:
    """Evaluation images: `demo:TARGET`, which is no path, a folder, or `LAYOUT:PATH`."""
    path = images_path(location)
    return location if path is None else location.removesuffix(path) + _absolute(path)


def images_path(location: str) -> str | None:
    """The path in a location of evaluation images, if it is no demo target's."""
    kind, colon, path = location.partition(":")
    if colon and kind == "demo":
        return None
    return path if colon and kind in LAYOUTS else location


def absolute_settings(settings: Json) -> Json:
    """Settings of a target, with the files and models that they name."""

    def absolute(area: str, name: str, value: object) -> object:
        place = PLACES.get((area, name))
        return place.absolute(value) if place and isinstance(value, str) else value

    return {
        area: {name: absolute(area, name, value) for name, value in values.items()}
        if isinstance(values, dict)
        else values
        for area, values in settings.items()
    }


def named_paths(settings: Json) -> Iterator[tuple[str, str]]:
    """(setting, path) of every path that settings name. Bytes are looked at too: a setting of text takes
    them."""
    for (area, name), place in PLACES.items():
        values = settings.get(area)
        value = values.get(name) if isinstance(values, dict) else None
        if isinstance(value, bytes | bytearray):
            value = value.decode(errors="replace")
        if isinstance(value, str) and value and (path := place.path_in(value)) is not None:
            yield f"{area}.{name}", path


def lies_under(path: str, folders: Sequence[str]) -> bool:
    """Whether an absolute path lies in one of the folders once links and `..` are followed."""
    try:
        real = Path(path).resolve()
        return Path(path).is_absolute() and any(real.is_relative_to(Path(one).resolve()) for one in folders)
    except (OSError, RuntimeError, ValueError):  # links in a circle; a NUL
        return False


def _absolute(path: str) -> str:
    return str(absolute_path(path))


class Place(NamedTuple):
    """A setting that may name a path: how it is made absolute, and which path it names, if any."""

    absolute: Callable[[str], str]
    path_in: Callable[[str], str | None]


PLACES: dict[tuple[str, str], Place] = {
    ("augment", "descriptors"): Place(_absolute, str),
    ("augment", "prompts"): Place(_absolute, str),
    ("encode", "model"): Place(absolute_model, model_path),
    ("train", "model"): Place(absolute_model, model_path),
    ("evaluate", "source"): Place(absolute_images, images_path),
    # a program without a folder is looked for where programs are
    ("download", "command"): Place(lambda name: _absolute(name) if "/" in name else name, str),
}
