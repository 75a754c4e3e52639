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

ROOT = Path(__file__).parents[2]
KERNELS = {"Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids"}  # of CPUs that can be any below
HOLD = "import time; held = bytearray(200_000_000); time.sleep(0.5); print('done')"


def test_parts_are_kept_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(record, "commit", lambda: "abc")
    monkeypatch.setattr(record, "machine", lambda: {"cpu": "old"})
    record.keep("embed", "raw", {"ratio": 0.123456, "same": True}, {"rows": 1})
    monkeypatch.setattr(record, "commit", lambda: "def")
    monkeypatch.setattr(record, "machine", lambda: {"cpu": "new"})
    line = record.keep("embed", "peer", {"faster": 2.0}, {"rows": 2})
    assert line == {"ratio": 0.1235, "same": True, "faster": 2.0}
    body = json.loads((tmp_path / "embed.json").read_text())
    kept = body["figures"]
    assert body["commit"] == "def" and body["machine"] == {"cpu": "new"}
    assert kept["measured_at"] == {"raw": "abc", "peer": "def"}
    assert kept["machines"] == {"raw": {"cpu": "old"}, "peer": {"cpu": "new"}}
    assert kept["detail"] == {"raw": {"rows": 1}, "peer": {"rows": 2}}


def test_a_part_that_was_kept_before_machines_were_told_has_none() -> None:
    told = record.stamps({"measured_at": {"raw": "abc"}}, ["peer"])
    assert set(told["measured_at"]) == {"raw", "peer"} and set(told["machines"]) == {"peer"}


def test_a_machine_tells_its_cpu_and_numpys_kernel() -> None:
    told = record.machine()
    assert told["cpu"] and told["cores"] == os.cpu_count()
    assert isinstance(told["blas"], str) and json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (
            "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz: odd\nmodel name\t: other\n",
            "Some CPU @ 2 GHz: odd",
        ),
        ("processor\t: 0\nmodel name\t:\n", "arm"),
        ("processor\t: 0\nBogoMIPS\t: 50.00\n", "arm"),
        (None, "arm"),
    ],
)
def test_a_cpu_without_a_name_is_told_by_python(
    info: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record.platform, "processor", lambda: "arm")
    file = tmp_path / "cpuinfo"
    if info is not None:
        file.write_text(info)
    assert record.cpu(file) == name


@pytest.mark.parametrize("kernel", ["Haswell", "Nehalem"])
def test_the_kernel_is_the_one_that_numpy_uses(kernel: str) -> None:
    """Also beside other libraries' OpenBLAS."""
    code = "import scipy.linalg; from benchmarks import record; print(record.blas())"
    environment = os.environ | {"OPENBLAS_CORETYPE": kernel}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    known = record.blas() in KERNELS  # not where numpy has another BLAS, or on ARM
    assert done.stdout.strip() == kernel if known else True


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
