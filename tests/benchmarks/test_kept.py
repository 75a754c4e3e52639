"""What benchmarks share: figures that are kept part by part, and the memory of a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import record
from benchmarks.memory import pss, run_watched, tree

HOLD = "import time; held = bytearray(200_000_000); time.sleep(0.5); print('done')"


def test_parts_are_kept_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(record, "commit", lambda: "abc")
    record.keep("embed", "raw", {"ratio": 0.123456, "same": True}, {"rows": 1})
    line = record.keep("embed", "peer", {"faster": 2.0}, {"rows": 2})
    assert line == {"ratio": 0.1235, "same": True, "faster": 2.0}
    kept = json.loads((tmp_path / "embed.json").read_text())["figures"]
    assert kept["measured_at"] == {"raw": "abc", "peer": "abc"}
    assert kept["detail"] == {"raw": {"rows": 1}, "peer": {"rows": 2}}


def test_memory_of_a_command_has_that_of_its_children(tmp_path: Path) -> None:
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}])"
    done = run_watched([sys.executable, "-c", command], tmp_path, every=0.05)
    assert done.out == "done\n" and done.returncode == 0 and done.seconds > 0.5
    assert 200e6 < done.peak_bytes < 1e9


def test_a_process_that_ends_while_it_is_looked_at_has_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(self: Path, pattern: str) -> None:
        raise ProcessLookupError(self)

    monkeypatch.setattr(Path, "glob", gone)
    assert tree(os.getpid()) == [os.getpid()]


def test_nobody_looks_unless_asked(tmp_path: Path) -> None:
    done = run_watched([sys.executable, "-c", "raise SystemExit(3)"], tmp_path, every=None)
    assert done.returncode == 3 and done.peak_bytes == 0


def test_a_process_that_has_ended_takes_no_memory() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert pss(ended.pid) == 0 and tree(ended.pid) == [ended.pid]
    assert pss(os.getpid()) > 0
