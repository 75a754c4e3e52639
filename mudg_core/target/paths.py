"""Paths in a spec, made to hold in any folder: workers have working folders of their own.

A relative one starts from the folder in which the command is typed, as other paths on a command line do.
"""

from __future__ import annotations

from collections.abc import Callable

from mudg_core.encode.weights import absolute as absolute_model
from mudg_core.encode.weights import absolute_path
from mudg_core.settings import Json

LAYOUTS = ("zhou", "fgvc", "imagenet", "wordnet", "folder")  # before the path of evaluation images


def absolute_images(location: str) -> str:
    """Evaluation images: `demo:TARGET`, which is no path, a folder, or `LAYOUT:PATH`."""
    kind, colon, path = location.partition(":")
    if colon and kind == "demo":
        return location
    if colon and kind in LAYOUTS:
        return f"{kind}:{_absolute(path)}"
    return _absolute(location)


def absolute_settings(settings: Json) -> Json:
    """Settings of a target, with the files and models that they name."""
    return {area: _absolute_files(area, values) for area, values in settings.items()}


def _absolute_files(area: str, values: object) -> object:
    known: dict[tuple[str, str], Callable[[str], str]] = {
        ("augment", "descriptors"): _absolute,
        ("augment", "prompts"): _absolute,
        ("encode", "model"): absolute_model,
        ("train", "model"): absolute_model,
        ("evaluate", "source"): absolute_images,
        ("download", "command"): _absolute_program,
    }
    if not isinstance(values, dict):
        return values
    changed: Json = {
        name: known[area, name](value) if isinstance(value, str) and (area, name) in known else value
        for name, value in values.items()
    }
    return changed


def _absolute_program(name: str) -> str:
    """One without a folder is looked for where programs are."""
    return _absolute(name) if "/" in name else name


def _absolute(path: str) -> str:
    return str(absolute_path(path))
