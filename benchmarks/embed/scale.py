"""What many rows take: memory, time against the plan, and the share of it that is orchestration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.embed import pipeline
from benchmarks.embed.command import drawn, started
from benchmarks.memory import SAMPLE_SECONDS
from mudg_core.settings import ENV_PREFIX, Settings

MUDG = Path(sys.executable).with_name("mudg")
PLAN_SECONDS = 300


def overhead(settings: Settings) -> tuple[float, dict[str, Any]]:
    """The share of the workers' wall time in which they were not inside the stage's function."""
    drawn(settings)
    with pipeline.fresh_store(settings) as fresh:
        found, _ = started("embed", fresh)
    return outside(found["inside"], found["workers"], found["seconds"]), found


def outside(inside: float, workers: int, seconds: float) -> float:
    return 1 - inside / (workers * seconds)


def growth(few: Settings, many: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Peak memory of both, with the same settings but for the number of rows, and the plan of the larger."""
    small, large = embedded(few), embedded(many)
    hours = planned_hours(many)
    line = {
        "peak_gb": large["peak_gb"],
        "peak_ratio": large["peak_gb"] / small["peak_gb"],
        "plan_ratio": 3600 * hours / large["seconds"],
    }
    return line, {"few": small, "many": large, "planned_seconds": 3600 * hours}


def embedded(settings: Settings) -> dict[str, Any]:
    drawn(settings)
    with pipeline.fresh_store(settings) as fresh:
        found, done = started("embed", fresh, SAMPLE_SECONDS)
    return found | {"peak_gb": done.peak_bytes / 1e9, "command_seconds": done.seconds}


def planned_hours(settings: Settings) -> float:
    """What the command says to a user who asks before."""
    corpus = settings.corpus
    flags = ["--rows", str(corpus.rows), "--set", f"corpus.rows_per_shard={corpus.rows_per_shard}"]
    flags += ["--set", f"storage.url={settings.storage.url}"]
    own = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
    out = subprocess.check_output([MUDG, "plan", "--json", *flags], env=own, text=True, timeout=PLAN_SECONDS)
    return hours_of("embed", json.loads(out.strip().splitlines()[-1]))


def hours_of(stage: str, plan: dict[str, Any]) -> float:
    return next(float(line["hours"]) for line in plan["stages"] if line["stage"] == stage)
