"""Environments of peers: when they are made, where torch comes from, what is left of a peer that fails."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from benchmarks.embed import peer
from benchmarks.index.peer_runs import PEERS, REQUIREMENTS
from benchmarks.peer_environment import PeerError, backends, environment, find_links, run

FILES = [*(REQUIREMENTS / f"{name}.txt" for name in PEERS), peer.REQUIREMENTS]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_peers_have_exact_versions_and_no_place(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert lines and all("==" in line and ":" not in line and " " not in line for line in lines)
    assert not any("+" in line for line in lines), "a build of torch is the machine's own affair"


def test_an_environment_with_the_same_requirements_is_reused(tmp_path: Path) -> None:
    (tmp_path / "hnsw").mkdir()
    (tmp_path / "hnsw" / "requirements.txt").write_bytes((REQUIREMENTS / "hnsw.txt").read_bytes())
    assert environment(REQUIREMENTS / "hnsw.txt", tmp_path) == tmp_path / "hnsw" / "bin" / "python"


def test_uv_is_told_of_the_wheels_that_pip_knows() -> None:
    assert find_links({}) == find_links({"PIP_FIND_LINKS": ""}) == {}
    assert find_links({"PIP_FIND_LINKS": "one two"}) == {"UV_FIND_LINKS": "one,two"}
    assert find_links({"PIP_FIND_LINKS": "one", "UV_FIND_LINKS": "two"}) == {"UV_FIND_LINKS": "two"}


def test_torch_is_a_cpu_build_wherever_one_can_be_had(tmp_path: Path) -> None:
    asked = "numpy==1\ntorch==2\n"
    assert backends("torchvision==1\n", "") == [[]]
    assert backends(asked, "") == backends(asked, str(tmp_path)) == [["--torch-backend=cpu"], []]
    (tmp_path / "torch-2+cpu-any.whl").touch()
    assert backends(asked, str(tmp_path)) == [[]]


def test_a_command_is_given_threads_and_says_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    printed = run("peer", [sys.executable, "-c", "import os; print(os.environ['OMP_NUM_THREADS'])"], 60)
    assert printed == "1\n"
    with pytest.raises(PeerError, match="peer failed with exit code 3: its last words"):
        run("peer", ["sh", "-c", "echo its last words >&2; exit 3"], 60)


def test_whatever_a_peer_has_started_ends_with_it(tmp_path: Path) -> None:
    """The helper outlives its parent and holds its output open: nothing but a time-out ends the wait."""
    with pytest.raises(PeerError, match="peer was not done after 1 s"):
        run("peer", ["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; exit 1"], 1)
    helper = Path("/proc") / (tmp_path / "pid").read_text().strip()
    for _ in range(100):
        if not helper.exists() or "\nState:\tZ" in (helper / "status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the helper is still there")
