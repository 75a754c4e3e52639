"""`make bench-flow`: how much of a demo run goes to orchestration and not to the stages' own work.

python -m benchmarks.flow [--folder FOLDER] [--set AREA.NAME=VALUE]

Runs `mudg demo` in a new folder, once by processes of this machine and once on Prefect and Dask. Every
artifact says when it was made and how long that took, so the time in which at least one stage was at work is
known; the rest of the wall time, from the first import to the last line, is orchestration. Both must make the
same bytes. Figures are kept in benchmarks/results/flow.json (but with --set: that is a trial). The last line
printed is one JSON object: `overhead` and `seconds` are of processes, those of Prefect and Dask say so.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.memory import run_watched
from benchmarks.record import record, rounded

MUDG = Path(sys.executable).with_name("mudg")
Span = tuple[float, float]
EXECUTORS = ("processes", "prefect-dask")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to run (default: a new folder)")
    parser.add_argument("--set", action="append", default=[], help="a setting; figures are not kept")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="mudg-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    flags = [part for change in asked.set for part in ("--set", change)]
    runs = {name: measure(folder / name, [*flags, "--set", f"compute.executor={name}"]) for name in EXECUTORS}
    own, served = (runs[name] for name in EXECUTORS)
    if own.digests != served.digests:
        raise SystemExit("the executors made different bytes")
    line = {"overhead": own.overhead, "seconds": own.seconds}
    line |= {"overhead_prefect_dask": served.overhead, "seconds_prefect_dask": served.seconds}
    line |= {"tasks": _task_runs(folder / EXECUTORS[1])}
    if not asked.set:
        detail = {name: {"busy_seconds": round(run.busy, 1)} for name, run in runs.items()}
        record("flow", {"line": rounded(line), "detail": detail | {"artifacts": len(own.digests)}})
    sys.stdout.write(json.dumps(rounded(line)) + "\n")


@dataclass(frozen=True)
class Measured:
    """A run: its wall time, the seconds in which a stage was at work, and the digests of what it made."""

    seconds: float
    busy: float
    digests: dict[str, str]

    @property
    def overhead(self) -> float:
        return 1 - self.busy / self.seconds


def measure(folder: Path, flags: list[str]) -> Measured:
    """Nobody looks at memory meanwhile: looking costs time, which would count as orchestration."""
    folder.mkdir(parents=True, exist_ok=True)
    done = run_watched([MUDG, "demo", "--json", *flags], folder, every=None)
    if done.returncode:
        raise SystemExit(done.returncode)
    made = [json.loads(path.read_text()) for path in folder.glob(".mudg/artifacts/*/*/manifest.json")]
    busy = covered([_span(manifest["circumstances"]) for manifest in made])
    return Measured(
        done.seconds, busy, {f"{one['recipe']['stage']}/{one['key']}": one["digest"] for one in made}
    )


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
