"""Runs of the tiny flow in processes of their own, on a Dask cluster whose every process can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

from mudg_core.processes import dying_with
from tests.faults.runs import KilledRun
from tests.support.demo_runs import environment

ROOT = Path(__file__).parents[2]
QUIET = {"PREFECT_LOGGING_LEVEL": "CRITICAL", "DASK_LOGGING__DISTRIBUTED": "critical"}
MAIN = "from tests.support.tiny import main; main()"
SECONDS = 240.0

T = TypeVar("T")


def until(look: Callable[[], T | None], what: str, seconds: float = SECONDS) -> T:
    deadline = time.monotonic() + seconds
    while (value := look()) is None:
        assert time.monotonic() < deadline, f"no sign of {what}"
        time.sleep(0.05)
    return value


class TinyRun(KilledRun):
    """One run as a command does it: with a private Prefect server, and a cluster unless one is named."""

    def begin(self, *numbers: int, **compute: Any) -> None:
        with (self.folder / "runs.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", MAIN, str(self.folder), json.dumps(compute), json.dumps(numbers)],
                cwd=ROOT,
                env=environment(**QUIET, **self.extra, FAULTS_MARK=self.mark),
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=dying_with(os.getpid()),
            )

    def ended(self, seconds: float = SECONDS) -> dict[str, Any]:
        """Its output, which must come in time; and nothing that it started is left."""
        try:
            output, _ = self.process.communicate(timeout=seconds)
        finally:
            self.process.kill()
        assert output, (self.folder / "runs.log").read_text()[-3000:]
        self.assert_gone()
        result: dict[str, Any] = json.loads(output)
        return result

    def at(self, number: int) -> int:
        """Waits for the task that hangs there; the process that it is in."""

        def worker() -> int | None:
            assert self.process.poll() is None, (self.folder / "runs.log").read_text()[-3000:]
            with suppress(FileNotFoundError, ValueError):
                return int((self.folder / f"at-{number}").read_text())
            return None

        return until(worker, f"number {number}")

    def go(self, number: int) -> None:
        (self.folder / f"go-{number}").touch()

    def server(self) -> psutil.Process:
        """Its private Prefect server."""
        children = psutil.Process(self.process.pid).children()
        (server,) = [child for child in children if "uvicorn" in child.cmdline()]
        return server


@dataclass(frozen=True)
class Cluster:
    address: str
    scheduler: subprocess.Popen[bytes]


@contextmanager
def dask(folder: Path, workers: int = 1, **extra: str) -> Iterator[Cluster]:
    """A scheduler, and workers without nannies: nobody ends or replaces one that is stopped. `extra` is the
    environment of the workers."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    common = ["--no-dashboard", "--dashboard-address=127.0.0.1:0", "--host=127.0.0.1"]
    common.append(f"--scheduler-file={file}")
    no_nanny = ["--no-nanny", "--nthreads=1", "--death-timeout=60", f"--local-directory={folder / 'dask'}"]
    preload = "--preload=tests.support.tiny"  # or its import would keep a worker from sending heartbeats
    processes = [_start(folder, {}, "scheduler", "--port=0", *common)]
    try:
        address = until(lambda: _address(file), "a scheduler")
        processes += [_start(folder, extra, "worker", preload, *no_nanny, *common) for _ in range(workers)]
        yield Cluster(address, processes[0])
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _start(folder: Path, extra: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    ttl = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "15s"}
    with (folder / "dask.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words],
            cwd=ROOT,
            env=environment(**ttl, **extra),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=dying_with(os.getpid()),
        )


def _address(file: Path) -> str | None:
    with suppress(FileNotFoundError, ValueError):
        return str(json.loads(file.read_text())["address"])
    return None
