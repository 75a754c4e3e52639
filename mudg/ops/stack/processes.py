"""Processes that outlive the command that starts them, and are ended by a later one.

A process number is used again once its process has ended, so a number never says whom to signal. A process
is ours if number and time of start are those that were recorded, or if it carries the stack's mark in its
environment. The mark also finds what a part has started in turn: flow runs have sessions of their own, and a
`mudg up` that is killed may not have recorded the last process.
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
CLOCK_SECONDS = 1.0  # times of start are reckoned from the clock, which may be set meanwhile
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
    with _log(log).open("ab") as stream:
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
    started = psutil.Process(child.pid).create_time()
    return Process(
        name=name,
        pid=child.pid,
        started=started,
        command=tuple(command),
        mark=environment.get(MARK, ""),
        ports=dict(ports or {}),
    )


def _log(path: Path) -> Path:
    """The log before is kept once it has grown large, and the one before that is not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".old"))
    path.touch(0o600)
    return path


def exit_code(process: Process, seconds: float) -> int | None:
    """Of a process that this very command has started; None if it is still at work by then."""
    try:
        return _children[process.pid].wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def is_alive(process: Process) -> bool:
    return _find(process) is not None


def listens(process: Process) -> bool:
    """Whether it is this very process that has its ports: whoever else answers there is none of ours, however
    well it answers."""
    found = _find(process)
    if found is None:
        return False
    with suppress(psutil.Error):
        own = {one.laddr.port for one in found.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
        return own >= set(process.ports.values())
    return False


def _find(process: Process) -> psutil.Process | None:
    try:
        found = psutil.Process(process.pid)
        return found if _is_ours(found, process) and _runs(found) else None
    except psutil.Error:
        return None


def _is_ours(found: psutil.Process, process: Process) -> bool:
    """By its time of start, or, if the clock was set since then, by its mark."""
    if abs(found.create_time() - process.started) < CLOCK_SECONDS:
        return True
    return bool(process.mark) and found.environ().get(MARK) == process.mark


def _runs(process: psutil.Process) -> bool:
    """One that has ended and that nobody has asked about is still listed."""
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def marked(stack: str, name: str | None = None) -> list[psutil.Process]:
    """The processes of a stack, or of one part of it, by what their environment says."""
    wanted = mark_of(stack, name or "")
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            mark = str(process.environ().get(MARK, ""))
            ours = mark == wanted if name else mark.startswith(wanted)
            if ours and process.pid != os.getpid() and _runs(process):
                found.append(process)
    return found


def end(stack: str, name: str, process: Process | None, grace: float, *, all_at_once: bool = False) -> bool:
    """Ends a part and all it has started; False if nothing of it was there. The part itself is asked first,
    as it knows best how to end its own, unless they are to be asked `all_at_once`; whoever is left after the
    grace is killed."""
    leader = _find(process) if process else None
    members = _members(stack, name, leader)
    _ask_of_children()
    if not members:
        return False
    _signal([leader] if leader and not all_at_once else members, signal.SIGTERM)
    _wait(stack, name, leader, grace)
    deadline = time.monotonic() + KILL_SECONDS
    while (left := _members(stack, name, leader)) and time.monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)
    _ask_of_children()
    return True


def _ask_of_children() -> None:
    """Of those that this very command has started: whoever has ended is listed until somebody asks."""
    for child in _children.values():
        child.poll()


def _wait(stack: str, name: str, leader: psutil.Process | None, grace: float) -> None:
    """Looking at all processes is dear, so at first only at the one that was asked."""
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        if not (leader and _runs(leader)) and not _members(stack, name, None):
            return
        time.sleep(PAUSE_SECONDS)


def _members(stack: str, name: str, leader: psutil.Process | None) -> list[psutil.Process]:
    found = {one.pid: one for one in marked(stack, name)}
    if leader is not None and _runs(leader):
        found[leader.pid] = leader
    return list(found.values())


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """psutil looks once more whether the number is still that of the same process."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)
