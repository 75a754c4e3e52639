"""What people see of a run in Prefect's UI, read back from a real server."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import httpx
import pytest
from distributed import LocalCluster
from prefect import Flow, flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
)
from prefect.client.schemas.objects import Artifact, FlowRun, State, TaskRun

import tasks.executors.progress
from mudg_core.errors import DataError
from mudg_core.settings import Settings, load_settings
from mudg_core.storage import Facts
from tasks.executors.prefect_artifacts import MOST_ROWS, Shown, link, markdown, show, table
from tasks.executors.prefect_dask import PrefectOnDask
from tasks.policy import Work, stage
from tasks.run import Run, counted
from tests.support.places import Place

pytestmark = pytest.mark.timeout(600)

told = threading.Semaphore(0)


@stage("waiting", gpu=True)
def waiting(work: Work, *, seed: int) -> Facts:
    """Until Prefect was told how far it is."""
    for step in counted(range(2), 2, work.progress):
        assert not step or told.acquire(timeout=60)
    (work.scratch / "seed.txt").write_text(str(seed))
    return Facts({"rows": 1})


@stage("refusing")
def refusing(work: Work, *, seed: int) -> Facts:
    raise DataError(what="three is bad", where="shard 7", fix="use four")


@pytest.fixture
def settings(servers: Place, tmp_path: Path) -> Settings:
    storage = {"url": f"file://{tmp_path}", "cache_dir": str(tmp_path / "cache")}
    return load_settings(
        overrides={"storage": storage, "compute": {"dask_address": servers.dask}}, environ={}
    )


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The first word is due at once, and said before the work goes on."""
    create = tasks.executors.progress.create

    def counting(*arguments: Any) -> Any:
        made = create(*arguments)
        told.release()
        return made

    monkeypatch.setattr(tasks.executors.progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(tasks.executors.progress, "create", counting)
    yield
    while told.acquire(blocking=False):
        pass


@pytest.fixture
def here(settings: Settings) -> Iterator[Settings]:
    """Workers are threads of this process, where a test can reach them."""
    with (
        dask.config.set({"distributed.comm.require-encryption": False}),  # what stays in a process has none
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
    ):
        yield settings.replace({"compute": {"dask_address": cluster.scheduler_address}})


def ended(body: Flow[..., Any], *arguments: Any) -> State[Any]:
    state: State[Any] = body(*arguments, return_state=True)
    return state


def artifacts(state: State[Any]) -> list[Artifact]:
    run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[_run_id(state)]))
    with get_client(sync_client=True) as client:
        return client.read_artifacts(artifact_filter=run)


def flow_run(state: State[Any]) -> FlowRun:
    with get_client(sync_client=True) as client:
        return client.read_flow_run(_run_id(state))


def _run_id(state: State[Any]) -> Any:
    assert state.state_details.flow_run_id is not None
    return state.state_details.flow_run_id


def task_runs(state: State[Any], count: int) -> dict[str, tuple[list[str], str]]:
    """Prefect records states of tasks in its own time."""
    only = FlowRunFilter(id=FlowRunFilterId(any_=[_run_id(state)]))

    async def read() -> list[TaskRun]:
        async with get_client() as client:
            return await client.read_task_runs(flow_run_filter=only)

    deadline, found = time.monotonic() + 60, list[TaskRun]()
    while sum(bool(run.state and run.state.is_final()) for run in found) < count:
        assert time.monotonic() < deadline, found
        found = asyncio.run(read())
    return {run.name: (sorted(run.tags), str(run.state_name)) for run in found}


@flow(persist_result=False)
def wait_for_two(settings: Settings) -> None:
    with PrefectOnDask(settings.compute) as executor:
        run = Run(settings, part="animals", executor=executor)
        waiting.map(run, [waiting.job(seed=seed) for seed in (0, 1)])


@flow(persist_result=False)
def refuse(settings: Settings) -> None:
    with PrefectOnDask(settings.compute) as executor:
        refusing(Run(settings, executor=executor), seed=0)


def test_progress_names_and_tags(here: Settings, at_once: None) -> None:
    first = ended(wait_for_two, here)
    shown = artifacts(first)
    assert {(one.type, one.key, one.data) for one in shown} == {
        ("progress", "progress-waiting-animals", 100.0)
    }
    assert sum(one.task_run_id is None for one in shown) == 1, "one of the stage, and one of each task"
    keys = [waiting.recipe(here, {"seed": seed}).key[:8] for seed in (0, 1)]
    assert task_runs(first, 2) == {
        f"waiting animals, seed {n}, {n + 1} of 2 {keys[n]}": (["gpu"], "Completed") for n in (0, 1)
    }
    again = ended(wait_for_two, here)
    assert artifacts(again) == []
    assert list(task_runs(again, 2).values()) == [([], "Cached")] * 2, "without tags: it waits for no GPU"


def test_f20_oversized_content_is_cut_and_the_run_succeeds(servers: Place) -> None:
    rows = [{"class": f"<b>{n}</b>", "kept": n} for n in range(1000)]
    page = "https://x.org/report.html"

    def made() -> list[Shown]:
        text = markdown("text", "", ["x" * 1000] * 10_000, f"<{page}>")
        return [table("funnel", "", rows, page), text, link("report", "", "the report", page)]

    state = ended(flow(lambda: show(made), name="oversized", persist_result=False))
    found = {one.key: one for one in artifacts(state)}
    assert state.is_completed()
    assert len(json.loads(found["funnel"].data)) == MOST_ROWS and page in str(found["funnel"].description)
    assert json.loads(found["funnel"].data)[0] == {"class": "`<b>0</b>`", "kept": 0}
    assert len(found["text"].data) < 100_000 and page in found["text"].data
    assert found["report"].data == f"[the report](<{page}>)"


def test_a_server_that_refuses_fails_no_run(
    servers: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(self: SyncPrefectClient, artifact: Any) -> Any:
        raise httpx.HTTPError(f"too large: {artifact.data}")

    def made() -> list[Shown]:
        return [link("report", "", "the report", "https://x.org/?X-Amz-Signature=5ec7e7")]

    def body() -> int:
        show(made)
        show(made)
        return 7

    monkeypatch.setattr(SyncPrefectClient, "create_artifact", refused)
    with caplog.at_level(logging.WARNING, "tasks.executors.prefect_artifacts"):
        assert flow(body, name="refused", persist_result=False)() == 7
    (line,) = [
        record.getMessage() for record in caplog.records if record.name == "tasks.executors.prefect_artifacts"
    ]
    assert "too large" in line and "5ec7e7" not in line


def test_a_failed_run_says_what_where_and_what_to_do(settings: Settings) -> None:
    state = ended(refuse, settings)
    shown = flow_run(state).state
    assert shown is not None and shown.is_failed()
    for part in ("DataError", "three is bad", "where: shard 7", "to do: use four"):
        assert part in str(shown.message)
