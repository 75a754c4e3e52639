"""`make bench-demo`: the demo cold, again, and in full; accuracy, wall time and peak memory.

python -m benchmarks.demo [--full] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.memory import run_watched
from benchmarks.record import record

MUDG = Path(sys.executable).with_name("mudg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--full", action="store_true", help="three targets, three seeds")
    parser.add_argument("--folder", type=Path, help="where to run (default: a new folder)")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="mudg-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["--full"] if arguments.full else []
    cold = measure(flags, folder)
    warm = measure(flags, folder)
    figures = {"cold": cold, "warm": warm}
    record("demo-full" if arguments.full else "demo", figures)
    sys.stdout.write(json.dumps(figures) + "\n")


def measure(flags: list[str], folder: Path) -> dict[str, Any]:
    """Runs the demo, sampling the memory of its whole process tree."""
    done = run_watched([MUDG, "demo", "--json", *flags], folder)
    if done.returncode:
        raise SystemExit(done.returncode)
    result: dict[str, Any] = json.loads(done.out.strip().splitlines()[-1])
    result.pop("report")
    return result | {"wall_seconds": round(done.seconds, 1), "peak_gb": round(done.peak_bytes / 1e9, 2)}


if __name__ == "__main__":
    main()
