"""Processes that outlive the command that starts them, and are stopped by a later one.

A process number is used again once its process has ended, so a number never says whom to signal. A process
is ours if number and time of start are those that were recorded, or if it carries the stack's mark in its
environment. The mark also finds what a part has started in turn: flow runs have sessions of their own, and a
`mudg up` that is killed may not have recorded the last process. Why we do this ourselves: decision 0018.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from mudg.ops.stack.state import Process

MARK = "_MUDG_STACK"  # with MUDG_ in front it would be taken for a setting
CLOCK_SECONDS = 1.0  # times of start are computed from the clock, which may be set meanwhile
KILL_SECONDS = 10.0
PAUSE_SECONDS = 0.1
LOG_BYTES = 10_000_000

_children: dict[int, subprocess.Popen[bytes]] = {}  # or Python would complain of those that it leaves


def mark_of(stack: str, name: str) -> str:
    return f"{stack}:{name}"


def spawn(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    ports: Mapping[str, int] | None = None,
) -> Process:
    """In a session of its own: closing the terminal, or Ctrl-C in it, does not reach it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(".old"))
    log.touch(0o600)
    with log.open("ab") as stream:
        child = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    _children[child.pid] = child
    return Process(
        name=name,
        pid=child.pid,
        started=psutil.Process(child.pid).create_time(),
        command=tuple(command),
        mark=environment.get(MARK, ""),
        ports=dict(ports or {}),
    )


def exit_code(process: Process, seconds: float) -> int | None:
    """Of a process that this very command has started; None if it still runs by then."""
    try:
        return _children[process.pid].wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def is_alive(process: Process) -> bool:
    return _find(process) is not None


def listens(process: Process) -> bool:
    """Whether it is this very process that has its ports: whoever else answers there is none of ours, however
    well it answers."""
    running = _find(process)
    if running is None:
        return False
    with suppress(psutil.Error):
        connections = running.net_connections("tcp")
        listening = {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}
        return listening >= set(process.ports.values())
    return False


def _find(process: Process) -> psutil.Process | None:
    """By its time of start, or, if the clock was set since then, by its mark."""
    with suppress(psutil.Error):
        running = psutil.Process(process.pid)
        same = abs(running.create_time() - process.started) < CLOCK_SECONDS
        if (same or (process.mark and running.environ().get(MARK) == process.mark)) and _runs(running):
            return running
    return None


def _runs(process: psutil.Process) -> bool:
    """One that has ended, and whose exit code nobody has read, is still listed."""
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def marked(stack: str, name: str | None = None) -> list[psutil.Process]:
    """The processes of a stack, or of one part of it, by what their environment says."""
    prefix, members = mark_of(stack, name or ""), []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            mark = str(process.environ().get(MARK, ""))
            ours = mark == prefix if name else mark.startswith(prefix)
            if ours and process.pid != os.getpid() and _runs(process):
                members.append(process)
    return members


def end(stack: str, name: str, process: Process | None, grace: float, *, all_at_once: bool = False) -> bool:
    """Ends a part and all it has started; False if nothing of it was there. The part itself gets the signal
    first, as it knows best how to end its own, unless they all get it `all_at_once`; whoever is left after
    the grace is killed."""
    leader = _find(process) if process else None
    members = _members(stack, name, leader)
    _read_exit_codes()
    if not members:
        return False
    _signal([leader] if leader and not all_at_once else members, signal.SIGTERM)
    deadline = time.monotonic() + grace
    # To go through all processes is slow, so at first only the one that got the signal is looked at.
    while time.monotonic() < deadline and ((leader and _runs(leader)) or _members(stack, name, None)):
        time.sleep(PAUSE_SECONDS)
    deadline = time.monotonic() + KILL_SECONDS
    while (left := _members(stack, name, leader)) and time.monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)
    _read_exit_codes()
    return True


def _read_exit_codes() -> None:
    """Of those that this very command has started: whoever has ended is listed until then."""
    for child in _children.values():
        child.poll()


def _members(stack: str, name: str, leader: psutil.Process | None) -> list[psutil.Process]:
    members = {process.pid: process for process in marked(stack, name)}
    if leader is not None and _runs(leader):
        members[leader.pid] = leader
    return list(members.values())


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """psutil looks once more whether the number is still that of the same process."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)
