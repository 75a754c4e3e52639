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


def commit() -> str:
    return _git("rev-parse", "HEAD") + ("-dirty" if _git("status", "--porcelain") else "")


def _git(*arguments: str) -> str:
    found = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=False, cwd=RESULTS.parent
    )
    return found.stdout.strip()
