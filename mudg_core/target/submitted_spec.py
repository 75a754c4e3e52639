"""Specs that are submitted at one place and run at another: what they may set, and where their files are.

A spec comes from whoever can write to the store or to Prefect, and it runs with the worker's rights. So it
names no path of the worker, unless under a folder that the operator allows (`target.allowed_paths`): a list
of descriptors is copied into an artifact, and any file is such a list. Files of phrases travel with a
submission.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.target.class_names import NameCheck, check_classes
from mudg_core.target.descriptor_pool import MAX_BYTES as MAX_PHRASES
from mudg_core.target.paths import images_path, lies_under, named_paths
from mudg_core.target.spec import MAX_BYTES, Target, load_target, parse_target
from mudg_core.target.user_files import read_text

# All else is of the machine that runs a target; `download.command` would even be a program of the sender's.
SUBMITTABLE = ("profile", "encode", "index", "augment", "dataset", "train", "evaluate", "gate")
PHRASE_FILES = ("descriptors", "prompts")  # of `augment`: small files, which are submitted with the spec
FIX = "ask whoever runs the workers for target.allowed_paths, or use `mudg target submit` for descriptors"


def load_for_submission(path: Path) -> tuple[Target, dict[str, str]]:
    """A spec on this machine, and the text of its files of phrases by their setting: lists of classes and
    phrases are read now, and the other paths are made absolute."""
    target = load_target(path)
    _check_settings(target, str(path))
    named = [(name, _augment(target).get(name)) for name in PHRASE_FILES]
    fix = "see docs/target.md for what is read"
    return target, {
        name: read_text(str(file), "file of phrases", MAX_PHRASES, fix) for name, file in named if file
    }


def parse_submitted(data: bytes, where: str, allowed: Sequence[str] = ()) -> Target:
    """A spec that somebody uploaded. Its paths would be read where it runs, so there is no folder that a
    relative one could start from."""
    if len(data) > MAX_BYTES:
        raise InputError(what=f"the target spec is larger than {MAX_BYTES >> 20} MiB", where=where)
    target = parse_target(data, where, files=False)
    _check_settings(target, where)
    if target.located() != target:
        raise InputError(
            what="a path in the spec is relative, and nobody knows to what",
            where=where,
            fix="give absolute paths of the machine that runs it, or use `mudg target submit`",
        )
    check_submitted(target, allowed, where)
    return target


def check_submitted(target: Target, allowed: Sequence[str], where: str) -> None:
    """The gate for every target that somebody else has submitted, whichever way it came. Names are checked
    again: nobody need have read the spec by our reader."""
    _check_settings(target, where)
    check_classes(((name, where) for name in target.classes), NameCheck())
    check_paths(target.settings, allowed, where)
    path = images_path(target.evaluation) if target.evaluation else None
    if path is not None:
        _check_path("evaluation", path, allowed, where)


def check_paths(settings: Json, allowed: Sequence[str], where: str) -> None:
    """Settings that came from elsewhere name no path of this machine but those that the operator allows."""
    for setting, path in named_paths(settings):
        _check_path(f"settings.{setting}", path, allowed, where)


@contextmanager
def with_phrase_files(target: Target, files: Mapping[str, str]) -> Iterator[Target]:
    """The target with the files that were submitted with it, in a folder that exists within the block."""
    with tempfile.TemporaryDirectory(prefix="mudg-phrases-") as folder:
        augment = dict(_augment(target))
        for name in (name for name in PHRASE_FILES if name in files):
            suffix = ".json" if str(augment.get(name)).lower().endswith(".json") else ".txt"
            file = Path(folder, f"{name}{suffix}")
            file.write_text(files[name], encoding="utf-8")
            augment[name] = str(file)
        yield _with_augment(target, augment)


def without_phrase_files(target: Target, files: Mapping[str, str]) -> Target:
    """The target for the gate to check: paths of files that came along are not read."""
    left_out = set(PHRASE_FILES) & files.keys()
    kept = {name: value for name, value in _augment(target).items() if name not in left_out}
    return _with_augment(target, kept)


def _augment(target: Target) -> Json:
    augment = target.settings.get("augment")
    return augment if isinstance(augment, dict) else {}


def _with_augment(target: Target, augment: Json) -> Target:
    """The same target, if there is nothing to change in its settings."""
    if augment == _augment(target):
        return target
    return target.model_copy(update={"settings": target.settings | {"augment": augment}})


def _check_path(setting: str, path: str, allowed: Sequence[str], where: str) -> None:
    """One answer for paths that exist and paths that do not: it tells nothing about the worker's disk."""
    if not lies_under(path, allowed):
        raise InputError(
            what=f"{setting} names a path of the worker that is in no folder it allows: {path[:200]}",
            where=where,
            fix=FIX,
        )


def _check_settings(target: Target, where: str) -> None:
    if refused := sorted(target.settings.keys() - set(SUBMITTABLE)):
        raise InputError(
            what=f"settings.{refused[0]} cannot be changed by a target that is submitted",
            where=where,
            fix="leave it to whoever runs the workers: `mudg settings` lists what there is",
        )
