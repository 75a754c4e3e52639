"""A worker that comes back from the dead, a scheduler and a Prefect server that are gone for good."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mudg_core.storage import layout
from tests.faults.tiny_runs import TinyRun, dask, until
from tests.support.demo_runs import task_states
from tests.support.tiny import BEHIND_PROXY, begun, ref_of, verified

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

NOWHERE = "http://127.0.0.1:9"


def commits(folder: Path, pid: int) -> tuple[str, str] | None:
    """What a process wanted to commit, and what it was told is there."""
    lines = (folder / "commits").read_text().splitlines() if (folder / "commits").exists() else []
    found = [line.split() for line in lines]
    return next(((own, there) for process, own, there in found if int(process) == pid), None)


def test_f09_a_worker_that_was_given_up_cannot_overwrite(
    tmp_path: Path,
) -> None:
    (tmp_path / "do-1").write_text("watch hang")
    with dask(tmp_path, workers=2) as cluster:
        run = TinyRun(tmp_path)
        run.begin(1, dask_address=cluster.address)
        zombie = run.at(1)
        os.kill(zombie, signal.SIGSTOP)
        assert len(run.ended()["made"]) == 1
        ref = verified(tmp_path, 1)
        manifest = tmp_path / ".mudg" / layout.manifest(ref.stage, ref.key)
        before = manifest.read_bytes()
        run.go(1)
        os.kill(zombie, signal.SIGCONT)
        own, there = until(lambda: commits(tmp_path, zombie), "the zombie's commit")
    assert begun(tmp_path) == [1, 1]
    assert own != there == ref.digest
    assert manifest.read_bytes() == before and verified(tmp_path, 1) == ref


def test_f10_the_scheduler_is_killed(tmp_path: Path) -> None:
    """A clear error, and whoever runs again goes on with what was committed."""
    (tmp_path / "do-2").write_text("hang")
    run = TinyRun(tmp_path)
    with dask(tmp_path) as cluster:
        run.begin(1, 2, dask_address=cluster.address)
        run.at(2)
        cluster.scheduler.kill()
        ended = run.ended()
    assert ended["error"] == "OrchestrationError" and ended["where"] == cluster.address
    assert "Dask scheduler" in ended["what"] and "tiny 2 of 2" in ended["what"]
    first = verified(tmp_path, 1)
    assert ref_of(tmp_path, 2) is None
    assert task_states(tmp_path) == {"Completed": 1, "Failed": 1}
    run.begin(1, 2, dask_address=cluster.address)  # nobody is there
    ended = run.ended()
    assert ended["error"] == "OrchestrationError" and ended["where"] == cluster.address
    with dask(tmp_path) as other:
        run.begin(1, 2, dask_address=other.address)
        assert len(run.ended()["made"]) == 2
    assert sorted(begun(tmp_path)) == [1, 2, 2] and verified(tmp_path, 1) == first and verified(tmp_path, 2)


def test_f17_the_prefect_server_is_gone_for_good(tmp_path: Path) -> None:
    """The task that is under way commits. The flow's end cannot be recorded: an error, after minutes."""
    (tmp_path / "do-2").write_text("hang")
    run = TinyRun(tmp_path)
    run.begin(1, 2)
    run.at(2)
    run.server().kill()
    run.go(2)
    ended = run.ended(900)
    assert ended["error"] == "OrchestrationError" and "Prefect server" in ended["what"]
    assert ended["where"].startswith("http://127.0.0.1:")
    kept = [verified(tmp_path, number) for number in (1, 2)]
    shutil.rmtree(tmp_path / ".mudg/prefect")  # the next server has never heard of that run
    run.begin(1, 2)
    assert run.ended()["made"] == [str(ref) for ref in kept]
    assert begun(tmp_path) == [1, 2]


def test_f18_workers_need_no_way_to_the_prefect_server(tmp_path: Path) -> None:
    """Neither from the start nor in the middle: the flow's process tells the server of all tasks."""
    (tmp_path / "do-2").write_text("rest cut")
    run = TinyRun(tmp_path)
    with dask(tmp_path, HTTP_PROXY=NOWHERE, http_proxy=NOWHERE, **{BEHIND_PROXY: "1"}) as cluster:
        run.begin(1, 2, 3, dask_address=cluster.address)
        ended = run.ended()
    assert ended["made"] == [str(verified(tmp_path, number)) for number in (1, 2, 3)]
    assert sorted(begun(tmp_path)) == [1, 2, 3] and not (tmp_path / "refused").exists()
    assert task_states(tmp_path) == {"Completed": 3}
    with closing(sqlite3.connect(tmp_path / ".mudg/prefect/prefect.db")) as database:
        assert database.execute("SELECT state_name FROM flow_run").fetchall() == [("Completed",)]
