"""Specs that are handed in at one place and run at another: what they may say, and where their files are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mudg_core.encode.weights import absolute as absolute_model
from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.target.spec import MAX_BYTES, Target, load_target, parse_target

# Of the machine that runs a target; `download.command` would even be a program of the submitter's choice.
NOT_THEIRS = ("storage", "compute", "gc", "corpus", "download")
LAYOUTS = ("zhou", "fgvc", "imagenet", "wordnet", "folder")  # before the path of evaluation images


def read_here(path: Path) -> Target:
    """A spec on this machine: lists of classes are read now, and paths are made to hold everywhere."""
    target = load_target(path)
    _check_settings(target, str(path))
    return _located(target)


def read_from_afar(data: bytes, where: str) -> Target:
    """A spec that somebody uploaded. Its paths would be read where it runs, so there is no folder that a
    relative one could start from."""
    if len(data) > MAX_BYTES:
        raise InputError(what=f"the target spec is larger than {MAX_BYTES >> 20} MiB", where=where)
    target = parse_target(data, where, files=False)
    _check_settings(target, where)
    if _located(target) != target:
        raise InputError(
            what="a path in the spec is relative, and nobody knows to what",
            where=where,
            fix="give absolute paths of the machine that runs it, or use `mudg target submit`",
        )
    return target


def _check_settings(target: Target, where: str) -> None:
    if taken := sorted(set(NOT_THEIRS) & target.settings.keys()):
        raise InputError(
            what=f"settings.{taken[0]} cannot be changed by a target that is handed in",
            where=where,
            fix="leave it to whoever runs the workers: `mudg settings` lists what there is",
        )


def _located(target: Target) -> Target:
    """The same target, each path in it absolute."""
    places = target.evaluation and _absolute_images(target.evaluation)
    settings = {area: _absolute_files(area, values) for area, values in target.settings.items()}
    return target.model_copy(update={"evaluation": places, "settings": settings})


def _absolute_images(location: str) -> str:
    kind, colon, path = location.partition(":")
    if colon and kind == "demo":
        return location
    if colon and kind in LAYOUTS:
        return f"{kind}:{_absolute(path)}"
    return _absolute(location)


def _absolute_files(area: str, values: object) -> object:
    known: dict[tuple[str, str], Callable[[str], str]] = {
        ("augment", "descriptors"): _absolute,
        ("augment", "prompts"): _absolute,
        ("encode", "model"): absolute_model,
        ("train", "model"): absolute_model,
        ("evaluate", "source"): _absolute_images,
    }
    if not isinstance(values, dict):
        return values
    changed: Json = {
        name: known[area, name](value) if isinstance(value, str) and (area, name) in known else value
        for name, value in values.items()
    }
    return changed


def _absolute(path: str) -> str:
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError as error:
        raise InputError(what=f"nobody's home folder: {error}", where=path[:200]) from error
