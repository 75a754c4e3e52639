"""`make bench-demo`: the demo cold, again, and in full; accuracy, wall time and peak memory.

python -m benchmarks.demo [--full] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

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
    started = time.monotonic()
    process = subprocess.Popen(
        [MUDG, "demo", "--json", *flags], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    peak = [0.0]
    watcher = threading.Thread(target=_watch, args=(process, peak), daemon=True)
    watcher.start()
    out, _ = process.communicate()
    watcher.join()
    if process.returncode:
        raise SystemExit(process.returncode)
    result: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    result.pop("report")
    return result | {"wall_seconds": round(time.monotonic() - started, 1), "peak_gb": round(peak[0] / 1e9, 2)}


def _watch(process: subprocess.Popen[str], peak: list[float]) -> None:
    """Sum of proportional set sizes: memory that processes share is counted once."""
    while process.poll() is None:
        peak[0] = max(peak[0], sum(_pss(pid) for pid in _tree(process.pid)))
        time.sleep(0.5)


def _tree(root: int) -> list[int]:
    found = [root]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(child) for child in _read(task).split()]
    return found


def _pss(pid: int) -> int:
    line = next(
        (line for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines() if line[:4] == "Pss:"),
        "Pss: 0",
    )
    return int(line.split()[1]) * 1024


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
