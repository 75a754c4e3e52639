"""Keeps the last figures of a benchmark, with what one needs to judge them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
CPUINFO = Path("/proc/cpuinfo")


def record(name: str, figures: dict[str, Any]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    body = {
        "figures": figures,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
    }
    path.write_text(json.dumps(body, indent=2) + "\n")
    return path


def keep(name: str, part: str, line: dict[str, Any], detail: dict[str, Any]) -> dict[str, Any]:
    """Into the file with what other parts have measured before; returns the short figures of all of them."""
    known = figures(name)
    short: dict[str, Any] = known.get("line", {}) | rounded(line)
    told = stamps(known, [part])
    record(name, {"line": short, **told, "detail": known.get("detail", {}) | {part: detail}})
    return short


def stamps(known: dict[str, Any], parts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Commit and machine of each part: those of now for these parts, and what is known for others."""
    now = {"measured_at": commit(), "machines": machine()}
    parts = list(parts)
    return {name: known.get(name, {}) | dict.fromkeys(parts, value) for name, value in now.items()}


def details(name: str) -> dict[str, Any]:
    """All that each part has measured before."""
    found: dict[str, Any] = figures(name).get("detail", {})
    return found


def figures(name: str) -> dict[str, Any]:
    """What the last runs of a benchmark measured; empty before the first."""
    file = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_text())["figures"] if file.is_file() else {}
    return found


def rounded(line: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in line.items()}


def machine() -> dict[str, Any]:
    """Without a name of its own: what figures may depend on."""
    return {
        "cores": os.cpu_count(),
        "cpu": cpu(CPUINFO),
        "blas": blas(),
        "platform": platform.platform(),
        "python": platform.python_version(),
    }


def cpu(info: Path) -> str:
    """The CPU's name as Linux tells it, else what Python says: on ARM and elsewhere its architecture."""
    lines = info.read_text(errors="replace").splitlines() if info.is_file() else []
    named = (
        value.strip()
        for name, _, value in (line.partition(":") for line in lines)
        if name.strip() == "model name"
    )
    return next(named, "") or platform.processor() or platform.machine()


def blas() -> str:
    """The kernel that numpy's OpenBLAS has chosen (`OPENBLAS_CORETYPE` counts); empty with another BLAS."""
    import numpy as np
    from threadpoolctl import threadpool_info

    room = Path(np.__file__).parents[1]
    beside = {room / "numpy", room / "numpy.libs"}  # other packages bring an OpenBLAS of their own
    found = [one for one in threadpool_info() if beside & set(Path(one["filepath"]).parents)]
    return next((one["architecture"] for one in found if "architecture" in one), "")


def commit() -> str:
    """What was measured; figures that another part has just written do not make it another program."""
    changed = _git("status", "--porcelain", "--", ":/", f":!{RESULTS.name}")
    return _git("rev-parse", "HEAD") + ("-dirty" if changed else "")


def _git(*arguments: str) -> str:
    found = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=False, cwd=RESULTS.parent
    )
    return found.stdout.strip()
