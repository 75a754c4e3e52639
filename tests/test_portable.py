"""Nothing on the way of the demo needs Linux, and Windows is told what to do."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mudg_core import processes

ROOT = Path(__file__).parents[1]
ROOMS = ("mudg_core", "tasks", "flows", "deployments")
LINUX_ONLY = {
    "copy_file_range", "epoll", "fdatasync", "memfd_create", "pidfd_open", "posix_fadvise", "prctl",
    "sched_getaffinity", "sched_setaffinity", "splice",
}  # fmt: skip
PORTABLE = {"mudg_core/processes.py", "mudg_core/plan/probe.py"}  # they ask whether the system has it
TESTS = ("tests/core/predict/test_run.py",)
TAKEN_AWAY = f"""
import os, sys
for name in {sorted(LINUX_ONLY)}:
    if hasattr(os, name):
        delattr(os, name)
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *{TESTS}]))
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=250
    )


def test_calls_that_only_linux_has_are_where_they_are_asked_for() -> None:
    uses = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in LINUX_ONLY)
        or (isinstance(node, ast.Constant) and str(node.value).startswith(("/proc/", "/dev/shm", "/sys/")))
    }
    assert uses == PORTABLE


def test_cpus_where_the_system_does_not_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert processes.usable_cpus() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processes.usable_cpus() == 1


def test_a_child_process_where_there_is_no_prctl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(processes.ctypes, "CDLL", lambda name: object())
    log = tmp_path / "log"
    with processes.process_group(["/bin/sh", "-c", "echo started"], os.environ, tmp_path, log) as leader:
        assert leader.wait(timeout=60) == 0
    assert log.read_text() == "started\n"


def test_prediction_without_them() -> None:
    tests = run(TAKEN_AWAY)
    assert tests.returncode == 0, tests.stdout[-3000:]


def test_windows_is_told_of_wsl() -> None:
    command = run("import sys; sys.platform = 'win32'; import flows.cli")
    assert (command.returncode, command.stdout) == (2, "")
    assert "WSL" in command.stderr and command.stderr.count("\n") == 1
