"""How an artifact came about: written into its manifest for people, never into its digest."""

from __future__ import annotations

import functools
import platform
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import mudg_core
from mudg_core.storage.manifest import BuildInfo


def build_info(attempt: str, seconds: float) -> BuildInfo:
    return BuildInfo(
        attempt=attempt,
        created=now(),
        seconds=round(seconds, 3),
        mudg_version=mudg_core.__version__,
        code_version=_commit(),
        platform=platform.platform(),
    )


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@functools.cache
def _commit() -> str:
    """The commit of a source checkout, read from its files: workers often have no git command."""
    git = Path(mudg_core.__file__).resolve().parent.parent / ".git"
    with suppress(OSError, UnicodeDecodeError):
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head[:40]
        branch = head.removeprefix("ref: ")
        if (git / branch).is_file():
            return (git / branch).read_text().strip()[:40]
        lines = (git / "packed-refs").read_text().splitlines()
        return next((line[:40] for line in lines if line.endswith(f" {branch}")), "")
    return ""
