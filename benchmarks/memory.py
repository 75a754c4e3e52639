"""The memory of a command and of everything that it has started, sampled while it runs."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.5


@dataclass(frozen=True)
class Watched:
    """How a command has ended."""

    out: str
    returncode: int
    seconds: float
    peak_bytes: int


def run_watched(command: Sequence[str | Path], folder: Path, every: float | None = SAMPLE_SECONDS) -> Watched:
    """Runs a command to its end, whatever that is. Looking takes time too: without `every` nobody looks, and
    the peak is 0."""
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(process, peak, every), daemon=True)
    watcher.start()
    out, _ = process.communicate()
    seconds = time.monotonic() - started
    watcher.join()
    return Watched(out, process.returncode, seconds, peak[0])


def _watch(process: subprocess.Popen[str], peak: list[int], every: float | None) -> None:
    """Sum of proportional set sizes: memory that processes share is counted once."""
    while every is not None and process.poll() is None:
        peak[0] = max(peak[0], sum(pss(pid) for pid in tree(process.pid)))
        time.sleep(every)


def tree(root: int) -> list[int]:
    """A process and its descendants."""
    found = [root]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(child) for child in _read(task).split()]
    return found


def pss(pid: int) -> int:
    """Bytes; 0 of a process that has ended."""
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
