"""Commands that are interrupted as a terminal does it: the signal goes to all that it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mudg.cli.interrupts import KEPT
from tests.faults.runs import KilledRun
from tests.support.demo_runs import MUDG, environment

PROMISED_SECONDS = 5.0
LONGEST_SECONDS = PROMISED_SECONDS + 1.0  # a busy machine may be so late to see that a process has ended
START_SECONDS = 120.0
CAUGHT = "SigCgt:"


@dataclass(frozen=True)
class Ended:
    """`seconds`: from the signal to the end. `done_before`: it had shown its result by then, and was on its
    way out, where Python no longer handles signals; its code is its own, or the kernel's."""

    code: int
    seconds: float
    errors: str
    done_before: bool

    def assert_interrupted(self, number: signal.Signals) -> None:
        """Its progress comes before, and nothing after the one line."""
        assert self.code == 128 + number, self.errors
        assert self.errors.endswith(f"{KEPT}\n") and self.errors.count(KEPT) == 1, self.errors
        assert "Traceback" not in self.errors
        assert self.seconds < LONGEST_SECONDS


def interrupt(
    folder: Path,
    command: list[str],
    when: Callable[[KilledRun, subprocess.Popen[bytes]], None],
    number: signal.Signals = signal.SIGINT,
    **extra: str,
) -> Ended:
    """Sends a command the signal when `when` returns. Whatever it had started is gone at its end."""
    run, errors, result = KilledRun(folder), folder / "interrupted.log", folder / "interrupted.out"
    with errors.open("wb") as log, result.open("wb") as shown:
        process = subprocess.Popen(
            [MUDG, *command],
            cwd=folder,
            env=environment(FAULTS_MARK=run.mark, **extra),
            stdout=shown,
            stderr=log,
            start_new_session=True,
            preexec_fn=as_in_a_terminal,
        )
    when(run, process)
    started = time.monotonic()
    if process.poll() is None:
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    code = process.wait(120)
    seconds = time.monotonic() - started
    done_before = code in (0, -number) and bool(result.read_bytes())
    if not done_before:
        run.assert_gone(LONGEST_SECONDS)
    return Ended(code, seconds, errors.read_text(), done_before)


def as_in_a_terminal() -> None:
    """Tests that a shell has started with `&` ignore Ctrl-C, and so would the command."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def after(seconds: float) -> Callable[[KilledRun, subprocess.Popen[bytes]], None]:
    """At a moment, but not before Python itself has started: until then the kernel ends it without a word."""

    def wait(run: KilledRun, process: subprocess.Popen[bytes]) -> None:
        begun = time.monotonic()
        listens(run, process)
        while process.poll() is None and time.monotonic() < begun + seconds:
            time.sleep(0.02)

    return wait


def listens(run: KilledRun, process: subprocess.Popen[bytes]) -> None:
    """Returns when the command handles SIGTERM, which is the first thing that it does."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and not _catches(process.pid, signal.SIGTERM):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def has_started(processes: int) -> Callable[[KilledRun, subprocess.Popen[bytes]], None]:
    """Returns when so many processes of the command are there, itself among them."""

    def wait(run: KilledRun, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while process.poll() is None and len(run.processes()) < processes:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    return wait


def _catches(pid: int, number: signal.Signals) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(CAUGHT):
            return bool(int(line.removeprefix(CAUGHT), 16) >> (number - 1) & 1)
    return False
