"""What differs between operating systems: the CPUs we may use, and child processes that cannot outlive us."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1

# The leader of a group. A signal at our death reaches it alone, and it takes the others with it.
LEADER = ("/bin/sh", "-c", 'trap "kill -KILL 0" TERM; "$@" & wait "$!"', "leader")


def usable_cpus() -> int:
    """CPUs that this process may run on; where the system cannot say (macOS), all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def dying_with(parent: int) -> Callable[[], None]:
    """What a child does before it becomes its program: it asks to be told when its parent dies. It looks once
    more then, as it is not told of a parent that was killed before it asked. Systems without `prctl` (macOS)
    cannot tell it."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return lambda: None

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return ask


def stops_with_parent(parent: int) -> None:
    """The same for a process that runs already: SIGTERM once its parent has died."""
    dying_with(parent)()


@contextmanager
def process_group(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that starts processes of its own, all of which end with the block, or with this process."""
    with log.open("ab") as stream:
        leader = subprocess.Popen(
            [*LEADER, *command],
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            preexec_fn=dying_with(os.getpid()),
        )
    try:
        yield leader
    finally:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()
