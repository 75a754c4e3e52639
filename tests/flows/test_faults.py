"""Tasks that fail, kill their workers or eat their memory, on real Prefect and real Dask."""

from __future__ import annotations

import time
from pathlib import Path

import dask
import prefect
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName, FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import Crashed, Running

from deployments import target_runs
from deployments.on_prefect import call
from deployments.target_runs import close_tasks_of_ended_runs
from mudg_core.errors import DataError, OrchestrationError
from mudg_core.settings import Settings
from tasks.executors.clusters import scheduler
from tasks.flow import flow
from tasks.run import Run
from tests.support.places import Place
from tests.support.tiny import begun, ref_of, settings_of, tiny, tiny_flow, verified

LIMIT = "800MiB"


@pytest.fixture
def settings(servers: Place, tmp_path: Path) -> Settings:
    return settings_of(tmp_path, dask_address=servers.dask)


def assert_told(expected: tuple[str, list[str]]) -> None:
    """Sooner or later: the server hears of tasks by events."""
    deadline = time.monotonic() + 60
    while (seen := last_states()) != expected:
        assert time.monotonic() < deadline, seen
        time.sleep(0.2)


def last_states() -> tuple[str, list[str]]:
    """Of the flow, as the server has it, and of its tasks."""
    with get_client(sync_client=True) as client:
        named = FlowFilter(name=FlowFilterName(any_=[tiny_flow.name]))
        (run,) = client.read_flow_runs(flow_filter=named, sort=FlowRunSort.START_TIME_DESC, limit=1)
        of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
        tasks = client.read_task_runs(flow_run_filter=of_run)
    return str(run.state_name), sorted(str(task.state_name) for task in tasks)


@flow(tiny_flow.name, "Fails while its task is under way.", run_name=lambda settings, begun: "tiny")
def no_after_all(settings: Settings, begun: Path) -> None:
    tiny.start(Run(settings), [tiny.job(number=1)])
    deadline = time.monotonic() + 60
    while not begun.exists():
        assert time.monotonic() < deadline, "it was not begun"
        time.sleep(0.05)
    raise DataError(what="not after all")


def test_f06_finished_siblings_are_not_made_again(settings: Settings, tmp_path: Path) -> None:
    script = tmp_path / "do-3"
    script.write_text("fail")
    with pytest.raises(DataError, match="number 3"):
        call(tiny_flow, settings, [1, 2, 3])
    assert sorted(begun(tmp_path)) == [1, 2, 3]
    kept = [ref_of(tmp_path, number) for number in (1, 2)]
    script.unlink()
    made = call(tiny_flow, settings, [1, 2, 3])
    assert made[:2] == [str(ref) for ref in kept]
    assert sorted(begun(tmp_path)) == [1, 2, 3, 3]


def test_f04_a_task_that_kills_four_workers(settings: Settings, tmp_path: Path) -> None:
    script = tmp_path / "do-2"
    script.write_text("rest die")
    with pytest.raises(OrchestrationError) as raised:
        call(tiny_flow, settings, [1, 2])
    name = tiny.run_name("", [tiny.recipe(settings, {"number": 2})], "2 of 2")
    assert f"{name} took down 4 workers" in raised.value.what
    assert_told(("Failed", ["Completed", "Failed"]))
    assert sorted(begun(tmp_path)) == [1, 2, 2, 2, 2]
    assert verified(tmp_path, 1) and ref_of(tmp_path, 2) is None
    script.unlink()
    call(tiny_flow, settings, [1, 2])
    assert_told(("Completed", ["Cached", "Completed"]))
    assert begun(tmp_path)[5:] == [2]


def test_f14_a_run_that_fails_does_not_wait_for_what_is_under_way(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "do-1").write_text("hang")
    with pytest.raises(DataError, match="after all"):
        call(no_after_all, settings, tmp_path / "at-1")
    assert_told(("Failed", ["Failed"]))
    (tmp_path / "go-1").touch()


def test_f13_tasks_of_a_run_that_was_killed_are_closed(
    servers: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    @prefect.task
    def working() -> None: ...

    with get_client(sync_client=True) as client:
        run = client.create_flow_run(prefect.flow(working.fn, name="killed"))
        task = client.create_task_run(working, run.id, dynamic_key="0", state=Running())
        client.set_flow_run_state(run.id, Crashed(), force=True)
        close_tasks_of_ended_runs()
        assert client.read_task_run(task.id).state_name == "Running", "its last words may be on their way"
        monkeypatch.setattr(target_runs, "SETTLED_SECONDS", -60)
        assert close_tasks_of_ended_runs() >= 1
        assert client.read_task_run(task.id).state_name == "Crashed"


def test_f12_a_worker_over_its_memory_limit_is_told_with_the_limit_and_the_batch_size(
    servers: Place, tmp_path: Path
) -> None:
    """Once is enough: the scheduler gives up at the first worker."""
    (tmp_path / "do-1").write_text("grow")
    compute = settings_of(tmp_path, memory_limit=LIMIT).compute
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        scheduler(compute) as address,
        pytest.raises(OrchestrationError, match="took down 1 workers") as raised,
    ):
        call(tiny_flow, settings_of(tmp_path, dask_address=address), [1])
    assert "compute.memory_limit" in raised.value.fix and "800.00 MiB" in raised.value.fix
    assert "encode.batch_size" in raised.value.fix and "train.image_chunk" in raised.value.fix
    assert begun(tmp_path) == [1] and ref_of(tmp_path, 1) is None
