"""The memory of a command and of everything that it has started, sampled while it runs."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
    with watched(process.pid, every) as peak:
        out, _ = process.communicate()
    seconds = time.monotonic() - started
    return Watched(out, process.returncode, seconds, peak[0])


@contextmanager
def watched(pid: int, every: float | None = SAMPLE_SECONDS) -> Iterator[list[int]]:
    """A list of one: the most bytes that a process and its descendants have together while the block runs."""
    peak, done = [0], threading.Event()
    watcher = threading.Thread(target=_watch, args=(pid, peak, every, done), daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def _watch(pid: int, peak: list[int], every: float | None, done: threading.Event) -> None:
    """Sum of proportional set sizes: memory that processes share is counted once."""
    while every is not None and not done.is_set():
        peak[0] = max(peak[0], sum(pss(each) for each in tree(pid)))
        done.wait(every)


def tree(root: int) -> list[int]:
    """A process and its descendants. One that ends while it is looked at has none."""
    found = [root]
    for pid in found:
        with suppress(OSError):
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
