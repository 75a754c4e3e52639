"""Children end with their block and with their parent, and so do the children that they have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mudg_core.processes import process_group

PATIENCE = 60.0
# A program with a child of its own; both note their numbers, and neither would end by itself.
FAMILY = 'sleep 1000 & echo $! >> "$1"; echo $$ >> "$1"; sleep 1000'
PARENT = """
import os, sys
from pathlib import Path
from mudg_core.processes import process_group
notes, log = Path(sys.argv[1]), Path(sys.argv[2])
with process_group(["sh", "-c", sys.argv[3], "sh", str(notes)], os.environ, notes.parent, log) as group:
    group.wait()
"""


def family(notes: Path) -> list[int]:
    """The numbers of both, once they are there."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        numbers = notes.read_text().split() if notes.exists() else []
        if len(numbers) == 2:
            return [int(number) for number in numbers]
        time.sleep(0.02)
    raise AssertionError("they did not start")


def is_running(number: int) -> bool:
    """A process that has ended may wait for somebody to take note of it."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_all_end(numbers: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE
    while any(map(is_running, numbers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, numbers))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_group_ends_with_its_block(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with process_group(["sh", "-c", FAMILY, "sh", str(notes)], os.environ, tmp_path, tmp_path / "log"):
        numbers = family(notes)
        assert all(map(is_running, numbers))
    assert_all_end(numbers)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere children are not told")
def test_a_group_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    command = [sys.executable, "-c", PARENT, str(notes), str(tmp_path / "log"), FAMILY]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as parent:
        numbers = family(notes)
        parent.send_signal(signal.SIGKILL)
    assert_all_end(numbers)


def test_exit_code_and_words_are_those_of_the_program(tmp_path: Path) -> None:
    command = ["sh", "-c", 'echo "$WORD here"; echo "$1" >&2; exit 7', "sh", "two words"]
    with process_group(command, {"WORD": "hello"}, tmp_path, tmp_path / "log") as group:
        assert group.wait(PATIENCE) == 7
    assert (tmp_path / "log").read_text() == "hello here\ntwo words\n"
