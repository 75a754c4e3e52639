"""Ctrl-C or SIGTERM at any moment: its exit code within seconds, one line, nothing left, a rerun goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from distributed import Client

from mudg.cli.interrupts import CLOSE_SECONDS, KILL_SECONDS
from mudg_core.settings import ComputeSettings
from tasks.executors.clusters import scheduler
from tests.faults.interrupted import (
    LONGEST_SECONDS,
    PROMISED_SECONDS,
    after,
    as_in_a_terminal,
    has_started,
    interrupt,
    listens,
)
from tests.faults.runs import EXECUTORS
from tests.support.demo_runs import FLAGS, digests, environment, mudg

STUBBORN = """
import subprocess, sys, time
from mudg.cli.interrupts import run_interruptibly
def command():
    child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); "
                              "print('up', flush=True); time.sleep(600)"], start_new_session=True)
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            sys.stderr.write("not I")
run_interruptibly(command)
"""
MOMENTS = 20
TWO_WORKERS = ("--set", "compute.workers=2")  # processes of their own
COMMANDS = {
    "demo": ["demo", *FLAGS, *TWO_WORKERS],
    "index build": ["index", "build", *FLAGS, *TWO_WORKERS],
    "target run": ["target", "run", "footwear.yaml", *FLAGS, *TWO_WORKERS],
    "search": ["search", "a photo of a cat"],
}
FOOTWEAR = "name: footwear\nclasses: [boot, sandal, sneaker]\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_f91_a_command_that_still_imports_says_one_line_and_ends(
    number: signal.Signals, tmp_path: Path
) -> None:
    interrupt(tmp_path, ["search", "a cat"], listens, number).assert_interrupted(number)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_f91_ctrl_c_while_the_private_server_or_workers_start(executor: str, tmp_path: Path) -> None:
    """They do not hear it: nobody waits for a server that is gone, and blames it."""
    command = [*COMMANDS["index build"], "--set", f"compute.executor={executor}"]
    interrupt(tmp_path, command, has_started(2)).assert_interrupted(signal.SIGINT)


def test_f91_all_that_is_waited_for_makes_less_than_what_is_promised() -> None:
    """The orderly end, children that are asked and then killed, and a second for a process to go."""
    assert CLOSE_SECONDS + 2 * KILL_SECONDS + 1 <= PROMISED_SECONDS


@pytest.fixture
def stubborn(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command that swallows the interrupt, and whose child ignores SIGTERM."""
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", STUBBORN],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=said,
            preexec_fn=as_in_a_terminal,
        )
    assert process.stdout and process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_f91_a_library_that_swallows_the_interrupt_is_not_waited_for(
    stubborn: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    os.kill(stubborn.pid, signal.SIGINT)
    assert stubborn.wait(LONGEST_SECONDS) == 130
    assert stubborn.stdout and stubborn.stdout.read() == b"", "its child holds the pipe while it lives"
    assert (tmp_path / "said").read_text().count("\n") == 1


def test_f91_a_second_ctrl_c_leaves_at_once(stubborn: subprocess.Popen[bytes], tmp_path: Path) -> None:
    started = time.monotonic()
    os.kill(stubborn.pid, signal.SIGINT)
    while not (tmp_path / "said").read_text():
        time.sleep(0.01)
    os.kill(stubborn.pid, signal.SIGINT)
    assert stubborn.wait(LONGEST_SECONDS) == 130
    assert time.monotonic() - started < 2.5, "the orderly end takes three seconds"


def test_f91_a_terminal_that_takes_no_words_is_not_waited_for(tmp_path: Path) -> None:
    """Ctrl-S, or a pipe that nobody reads."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.set_blocking(write, True)
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, stderr=write, preexec_fn=as_in_a_terminal
    )
    try:
        assert process.stdout and process.stdout.readline() == b"up\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(LONGEST_SECONDS) == 130
    finally:
        process.kill()
        process.wait()
        os.close(read)
        os.close(write)
        if process.stdout:
            process.stdout.close()


def test_f91_workers_of_a_run_do_not_hear_ctrl_c() -> None:
    def blocked() -> bool:
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    with scheduler(ComputeSettings(workers=1)) as address, Client(address) as client:  # type: ignore[no-untyped-call]
        assert client.submit(blocked).result(timeout=120)
    assert not blocked()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", COMMANDS)
def test_f91_interrupted_at_twenty_moments(name: str, tmp_path: Path) -> None:
    """One after the other in one folder, by Ctrl-C and SIGTERM in turn; the rerun makes the same bytes."""
    clean, folder = tmp_path / "clean", tmp_path / "run"
    for each in (clean, folder):
        each.mkdir()
        (each / "footwear.yaml").write_text(FOOTWEAR)
        if name in ("target run", "search"):
            assert mudg(*COMMANDS["index build"], cwd=each).returncode == 0
    started = time.monotonic()
    assert mudg(*COMMANDS[name], cwd=clean).returncode == 0
    undisturbed = time.monotonic() - started
    times = [_interrupted(folder, name, undisturbed * moment / MOMENTS, moment) for moment in range(MOMENTS)]
    sys.stderr.write(f"\n{name}: seconds to the end {json.dumps(times)}, promised {PROMISED_SECONDS}\n")
    assert mudg(*COMMANDS[name], cwd=folder).returncode == 0
    assert digests(folder) == digests(clean)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_f91_up_interrupted_at_twenty_moments(tmp_path: Path) -> None:
    """Whatever of the stack was started is ended again; the next `mudg up` brings it up."""
    started = time.monotonic()
    assert mudg("up", cwd=tmp_path).returncode == 0
    undisturbed = time.monotonic() - started
    assert mudg("down", "--wipe", cwd=tmp_path).returncode == 0
    times = []
    for moment in range(MOMENTS):
        times.append(_interrupted(tmp_path, "up", undisturbed * moment / MOMENTS, moment))
        assert mudg("down", cwd=tmp_path).returncode == 0
    sys.stderr.write(f"\nup: seconds to the end {json.dumps(times)}, promised {PROMISED_SECONDS}\n")
    assert mudg("up", cwd=tmp_path).returncode == 0
    assert mudg("down", cwd=tmp_path).returncode == 0


def _interrupted(folder: Path, name: str, seconds: float, moment: int) -> float | None:
    """The seconds that it took to end; None if it was done before."""
    number = (signal.SIGINT, signal.SIGTERM)[moment % 2]
    ended = interrupt(folder, COMMANDS.get(name, [name]), after(seconds), number)
    if ended.done_before:
        return None
    ended.assert_interrupted(number)
    return round(ended.seconds, 2)
