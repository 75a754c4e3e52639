"""Only our own processes are ended, and all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import psutil
import pytest

from mudg.ops.stack import processes
from mudg.ops.stack.processes import MARK, end, is_alive, mark_of, marked, spawn
from mudg.ops.stack.state import Process

ID = token_hex(8)  # nobody else's, who may run these tests at the same time
SLEEP = (sys.executable, "-c", "import time; time.sleep(600)")
# Starts a child in a session of its own, as a Prefect worker does, and does not end when it is asked to.
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
    "print('ready', flush=True)\n"
    "time.sleep(600)\n",
)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    for process in marked(ID):
        process.kill()


def started(folder: Path, name: str, command: tuple[str, ...] = SLEEP) -> Process:
    environment = os.environ | {MARK: mark_of(ID, name)}
    return spawn(name, command, environment, folder, folder / "logs" / f"{name}.log", {"p": 1})


def wait_for(text: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while text not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_process_has_a_session_of_its_own_and_is_ended(tmp_path: Path) -> None:
    process = started(tmp_path, "one")
    assert os.getsid(process.pid) == process.pid and is_alive(process) and process.ports == {"p": 1}
    other = started(tmp_path, "two")
    assert end(ID, "one", process, grace=30)
    assert not is_alive(process) and is_alive(other)
    assert not psutil.pid_exists(process.pid)  # nor is it listed as one that nobody has asked about
    assert not end(ID, "one", process, grace=30)
    assert end(ID, "two", None, grace=30)  # by its mark alone, as after a `mudg up` that was killed
    assert not is_alive(other)


def test_who_does_not_end_is_killed_with_all_it_started(tmp_path: Path) -> None:
    process = started(tmp_path, "stubborn", STUBBORN)
    wait_for("ready", tmp_path / "logs" / "stubborn.log")
    assert len(marked(ID, "stubborn")) == 2
    assert end(ID, "stubborn", process, grace=0.2)
    assert not marked(ID)


def test_children_of_a_part_that_died_are_found(tmp_path: Path) -> None:
    process = started(tmp_path, "stubborn", STUBBORN)
    wait_for("ready", tmp_path / "logs" / "stubborn.log")
    os.kill(process.pid, signal.SIGKILL)
    assert processes.exit_code(process, 30) == -signal.SIGKILL
    assert not is_alive(process) and len(marked(ID, "stubborn")) == 1
    assert end(ID, "stubborn", process, grace=5, all_at_once=True) and not marked(ID)


def test_a_number_that_somebody_else_has_now_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEP) as stranger:
        try:
            born = psutil.Process(stranger.pid).create_time()
            ours = Process(name="one", pid=stranger.pid, started=born - 100, command=SLEEP)
            assert not is_alive(ours) and not end(ID, "one", ours, grace=1)
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_clock_that_was_set_hides_nobody(tmp_path: Path) -> None:
    process = started(tmp_path, "one", SLEEP)
    later = process.model_copy(update={"started": process.started - 3600})
    assert process.mark and is_alive(later)
    assert not is_alive(later.model_copy(update={"mark": "another:one"}))
    assert end(ID, "one", process, grace=5)


def test_a_process_that_nobody_has_waited_for_counts_as_ended(tmp_path: Path) -> None:
    process = started(tmp_path, "one", (sys.executable, "-c", ""))
    deadline = time.monotonic() + 60
    while is_alive(process):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE


def test_a_large_log_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LOG_BYTES", 3)
    log = tmp_path / "logs" / "one.log"
    log.parent.mkdir()
    log.write_text("before")
    process = started(tmp_path, "one", (sys.executable, "-c", "print('now')"))
    assert processes.exit_code(process, 60) == 0
    assert log.read_text() == "now\n" and log.with_suffix(".old").read_text() == "before"
