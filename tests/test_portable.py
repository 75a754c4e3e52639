"""Nothing on the way of the demo needs Linux, and Windows is told what to do."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mudg_core import processes
from tests.support.other_systems import LINUX_ONLY, without_linux

ROOT = Path(__file__).parents[1]
ROOMS = ("mudg_core", "tasks", "flows", "deployments")
PORTABLE = {"mudg_core/processes.py", "mudg_core/plan/probe.py"}  # they ask whether the system has it
TESTS = ("tests/core/predict/test_run.py",)
MORE = {"/proc", "cpu_affinity", "ionice", "prlimit", "rlimit"}  # of psutil and of Linux's file systems
SYSTEM_FOLDERS = ("/proc/", "/dev/shm", "/sys/")


def run(code: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


def names_in(node: ast.AST) -> set[str]:
    """Attributes, imported names and texts, also those that `getattr` is asked for."""
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.ImportFrom):
        return {alias.name for alias in node.names}
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_calls_that_only_linux_has_are_where_they_are_asked_for() -> None:
    uses = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in names_in(node)
        if name in LINUX_ONLY | MORE or name.startswith(SYSTEM_FOLDERS)
    }
    assert uses == PORTABLE


def test_cpus_where_the_system_does_not_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert processes.usable_cpus() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processes.usable_cpus() == 1


def test_a_child_process_where_there_is_no_prctl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes.ctypes, "CDLL", lambda name: object())
    log = tmp_path / "log"
    with processes.process_group(["/bin/sh", "-c", "echo started"], os.environ, tmp_path, log) as leader:
        assert leader.wait(timeout=60) == 0
    assert log.read_text() == "started\n"


def test_calls_are_taken_away(tmp_path: Path) -> None:
    """What the tests of the demo rely on."""
    code = "import ctypes, os; print([hasattr(os, 'sched_getaffinity'), hasattr(ctypes.CDLL(None), 'prctl')])"
    assert run(code, without_linux(tmp_path)).stdout == "[False, False]\n"
    assert len(list(tmp_path.glob("process-*"))) == 1


def test_prediction_without_them(tmp_path: Path) -> None:
    code = "import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', *sys.argv[1:]]))"
    tests = run(code.replace("*sys.argv[1:]", ", ".join(map(repr, TESTS))), without_linux(tmp_path))
    assert tests.returncode == 0, tests.stdout[-3000:]


def test_windows_is_told_of_wsl() -> None:
    command = run("import sys; sys.platform = 'win32'; import mudg.cli")
    assert (command.returncode, command.stdout) == (2, "")
    assert "WSL" in command.stderr and command.stderr.count("\n") == 1
