"""Specs that are handed in at one place and run at another: what they may say, and where their files are."""

from __future__ import annotations

from pathlib import Path

from mudg_core.errors import InputError
from mudg_core.target.spec import MAX_BYTES, Target, load_target, parse_target

# Of the machine that runs a target; `download.command` would even be a program of the submitter's choice.
NOT_THEIRS = ("storage", "compute", "gc", "corpus", "download")


def read_here(path: Path) -> Target:
    """A spec on this machine: lists of classes are read now, and paths are made to hold everywhere."""
    target = load_target(path)
    _check_settings(target, str(path))
    return target


def read_from_afar(data: bytes, where: str) -> Target:
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
    return target


def _check_settings(target: Target, where: str) -> None:
    if taken := sorted(set(NOT_THEIRS) & target.settings.keys()):
        raise InputError(
            what=f"settings.{taken[0]} cannot be changed by a target that is handed in",
            where=where,
            fix="leave it to whoever runs the workers: `mudg settings` lists what there is",
        )
