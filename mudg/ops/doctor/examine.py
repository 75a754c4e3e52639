"""Runs all checks. None can take the others down: one that fails or hangs is a finding like any other, and so
is one whose libraries cannot be imported."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Literal, TypeAlias

from mudg.ops.stack.running import Stack
from mudg_core.settings import Settings

Level: TypeAlias = Literal["ok", "warning", "fault"]
SECONDS = 90.0  # some import torch, on a machine that may be busy


@dataclass(frozen=True)
class Installation:
    """What is checked. `stack`: the one that runs in `folder`, if any of it does."""

    settings: Settings
    folder: Path
    stack: Stack | None = None


@dataclass(frozen=True)
class Finding:
    """`fix` says what to do; nothing has to be done about what is ok."""

    name: str
    level: Level
    detail: str
    fix: str = ""


def ok(name: str, detail: str) -> Finding:
    return Finding(name, "ok", detail)


def warning(name: str, detail: str, fix: str) -> Finding:
    return Finding(name, "warning", detail, fix)


def fault(name: str, detail: str, fix: str) -> Finding:
    return Finding(name, "fault", detail, fix)


Check: TypeAlias = Callable[[Installation], list[Finding]]
CHECKS: dict[str, str | Check] = {
    "python": "mudg.ops.doctor.checks:python",
    "packages": "mudg.ops.doctor.checks:packages",
    "known breakages": "mudg.ops.doctor.checks:breakages",
    "stack": "mudg.ops.doctor.checks:stack",
    "storage": "mudg.ops.doctor.checks:storage",
    "prefect": "mudg.ops.doctor.prefect_checks:prefect",
    "dask": "mudg.ops.doctor.checks:dask",
    "gpu": "mudg.ops.doctor.checks:gpu",
    "disk": "mudg.ops.doctor.checks:disk",
    "img2dataset": "mudg.ops.doctor.checks:img2dataset",
}


def examine(
    installation: Installation,
    progress: Callable[[str], None] = lambda name: None,
    checks: Mapping[str, str | Check] = CHECKS,
    seconds: float = SECONDS,
) -> list[Finding]:
    findings: list[Finding] = []
    for name, check in checks.items():
        progress(name)
        findings += _bounded(name, check, installation, seconds)
    return findings


def _bounded(name: str, check: str | Check, installation: Installation, seconds: float) -> list[Finding]:
    """In a thread of its own, which is left behind if it does not come back."""
    findings: list[Finding] = []

    def run() -> None:
        try:
            findings.extend((resolve_name(check) if isinstance(check, str) else check)(installation))
        except Exception as error:
            detail = f"the check itself failed: {type(error).__name__}: {str(error)[:300]}"
            findings.append(fault(name, detail, "see whether the other checks say why; else it is our bug"))

    thread = threading.Thread(target=run, name=f"doctor-{name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return [fault(name, f"no answer within {seconds:g} s", "see whether that service or disk hangs")]
    return findings
