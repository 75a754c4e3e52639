"""Keeps the last figures of a benchmark, with what one needs to judge them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def record(name: str, figures: dict[str, Any]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    body = {
        "figures": figures,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {
            "cores": os.cpu_count(),
            "platform": platform.platform(),
            "python": platform.python_version(),
        },
    }
    path.write_text(json.dumps(body, indent=2) + "\n")
    return path


def keep(name: str, part: str, line: dict[str, Any], detail: dict[str, Any]) -> dict[str, Any]:
    """Into the file with what other parts have measured before; returns the short figures of all of them."""
    known = figures(name)
    short: dict[str, Any] = known.get("line", {}) | rounded(line)
    record(
        name,
        {
            "line": short,
            "measured_at": known.get("measured_at", {}) | {part: commit()},
            "detail": known.get("detail", {}) | {part: detail},
        },
    )
    return short


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


def commit() -> str:
    """What was measured; figures that another part has just written do not make it another program."""
    changed = _git("status", "--porcelain", "--", ":/", f":!{RESULTS.name}")
    return _git("rev-parse", "HEAD") + ("-dirty" if changed else "")


def _git(*arguments: str) -> str:
    found = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=False, cwd=RESULTS.parent
    )
    return found.stdout.strip()
