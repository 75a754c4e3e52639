"""`make bench-flow`: how much of a demo run goes to orchestration and not to the stages' own work.

python -m benchmarks.flow [--folder FOLDER] [--set AREA.NAME=VALUE]

Runs `mudg demo` in a new folder: Prefect, Dask, all stages, the report. Every artifact says
when it was made and how long that took, so the time in which at least one stage was at work is known; the
rest of the wall time, from the first import to the last line, is orchestration. Figures are kept in
benchmarks/results/flow.json (but with --set: that is a trial). The last line printed is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.memory import run_watched
from benchmarks.record import record, rounded

MUDG = Path(sys.executable).with_name("mudg")
Span = tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to run (default: a new folder)")
    parser.add_argument("--set", action="append", default=[], help="a setting; figures are not kept")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="mudg-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    line, detail = measure(folder, [part for change in asked.set for part in ("--set", change)])
    if not asked.set:
        record("flow", {"line": line, "detail": detail})
    sys.stdout.write(json.dumps(line) + "\n")


def measure(folder: Path, flags: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Nobody looks at memory meanwhile: looking costs time, which would count as orchestration."""
    done = run_watched([MUDG, "demo", "--json", *flags], folder, every=None)
    if done.returncode:
        raise SystemExit(done.returncode)
    made = [json.loads(path.read_text()) for path in folder.glob(".mudg/artifacts/*/*/manifest.json")]
    busy = covered([_span(manifest["circumstances"]) for manifest in made])
    line = {"overhead": 1 - busy / done.seconds, "tasks": _task_runs(folder), "seconds": done.seconds}
    return rounded(line), {"busy_seconds": round(busy, 1), "artifacts": len(made)}


def covered(spans: Iterable[Span]) -> float:
    """Seconds in which at least one of them lasts."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _span(made: dict[str, Any]) -> Span:
    end = datetime.fromisoformat(made["created"]).timestamp()
    return end - made["seconds"], end


def _task_runs(folder: Path) -> int:
    with closing(sqlite3.connect(folder / ".mudg/prefect/prefect.db")) as database:
        return int(database.execute("SELECT count(*) FROM task_run").fetchone()[0])


if __name__ == "__main__":
    main()
