"""Runs all checks. None can take the others down: one that fails or hangs is a finding like any other, and so
is one whose libraries cannot be imported."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import TypeAlias

from mudg.ops.doctor.finding import Case, Finding, fault

Check: TypeAlias = Callable[[Case], list[Finding]]

SECONDS = 90.0  # some import torch, on a machine that may be busy
CHECKS: dict[str, str | Check] = {
    "python": "mudg.ops.doctor.packages:python",
    "packages": "mudg.ops.doctor.packages:pins",
    "known breakages": "mudg.ops.doctor.packages:breakages",
    "stack": "mudg.ops.doctor.machine:stack",
    "storage": "mudg.ops.doctor.store:storage",
    "prefect": "mudg.ops.doctor.orchestration:prefect",
    "dask": "mudg.ops.doctor.cluster:dask",
    "gpu": "mudg.ops.doctor.machine:gpu",
    "disk": "mudg.ops.doctor.machine:disk",
    "img2dataset": "mudg.ops.doctor.machine:img2dataset",
}


def examine(
    case: Case,
    watch: Callable[[str], None] = lambda name: None,
    checks: Mapping[str, str | Check] = CHECKS,
    seconds: float = SECONDS,
) -> list[Finding]:
    findings: list[Finding] = []
    for name, check in checks.items():
        watch(name)
        findings += _bounded(name, check, case, seconds)
    return findings


def _bounded(name: str, check: str | Check, case: Case, seconds: float) -> list[Finding]:
    """In a thread of its own, which is left behind if it does not come back."""
    found: list[Finding] = []

    def look() -> None:
        try:
            found.extend((resolve_name(check) if isinstance(check, str) else check)(case))
        except Exception as error:
            what = f"the check itself failed: {type(error).__name__}: {str(error)[:300]}"
            found.append(fault(name, what, "see whether the other checks say why; else it is a bug of ours"))

    thread = threading.Thread(target=look, name=f"doctor-{name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return [fault(name, f"no answer within {seconds:g} s", "see whether that service or disk hangs")]
    return found
