"""Runs of the demo that are killed, and what is left of their processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.demo_runs import FLAGS, MUDG, environment

KILLER = Path(__file__).with_name("killer")
GONE_SECONDS = 60.0
ON_SERVERS = ("--set", "compute.executor=prefect-dask")  # of its own: there is most to be killed
EXECUTORS = ("processes", "prefect-dask")


@dataclass
class KilledRun:
    """A demo in a session of its own. All its processes carry a mark in their environment, by which those
    that outlive it are found, whoever has adopted them since."""

    folder: Path
    extra: dict[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self, command: str = 'exec "$0" "$@"') -> subprocess.Popen[bytes]:
        with (self.folder / "killed-runs.log").open("ab") as log:
            return subprocess.Popen(
                ["sh", "-c", command, MUDG, "demo", "--json", *FLAGS, *ON_SERVERS],
                cwd=self.folder,
                env=environment(**self.extra, FAULTS_MARK=self.mark),
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def processes(self) -> list[int]:
        variable = f"FAULTS_MARK={self.mark}".encode()
        pids = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if variable in path.read_bytes().split(b"\0"):
                    pids.append(int(path.parent.name))
        return pids

    def assert_gone(self, seconds: float = GONE_SECONDS) -> None:
        """Neither the private server nor a worker may outlive the run that started it."""
        deadline = time.monotonic() + seconds
        while alive := self.processes():
            assert time.monotonic() < deadline, f"still running: {alive}"
            time.sleep(0.1)


def kill_inside(folder: Path, stage: str, point: str, seconds: float = 300) -> int:
    """The exit code of a run that was to be killed inside a stage."""
    run = KilledRun(folder, {"PYTHONPATH": str(KILLER), "KILL_INSIDE": f"{stage}:{point}"})
    code = run.start().wait(seconds)
    run.assert_gone()
    return code


def kill_after(folder: Path, seconds: float, *, whole_group: bool) -> None:
    """Kills the main process at a moment, or with it at once all that it has started."""
    run = KilledRun(folder)
    process = run.start()
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    if process.poll() is None:
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    process.wait()
    run.assert_gone()


def server_started(run: KilledRun, seconds: float = 120) -> None:
    """Returns when the private server's process is there, long before it answers."""
    deadline = time.monotonic() + seconds
    while len(run.processes()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
