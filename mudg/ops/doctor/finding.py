"""What a check is given, and what it says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from mudg.ops.stack.running import Stack
from mudg_core.settings import Json, Settings

Level: TypeAlias = Literal["ok", "warning", "fault"]


@dataclass(frozen=True)
class Case:
    """`stack`: the one that runs in `folder`, if any of it does."""

    settings: Settings
    folder: Path
    stack: Stack | None = None


@dataclass(frozen=True)
class Finding:
    """`fix` says what to do; nothing has to be done about what is ok."""

    name: str
    level: Level
    found: str
    fix: str = ""

    def described(self) -> Json:
        return asdict(self)


def ok(name: str, found: str) -> Finding:
    return Finding(name, "ok", found)


def warning(name: str, found: str, fix: str) -> Finding:
    return Finding(name, "warning", found, fix)


def fault(name: str, found: str, fix: str) -> Finding:
    return Finding(name, "fault", found, fix)
