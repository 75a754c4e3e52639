"""Batches on a real Dask cluster and what goes wrong with them; no Prefect server is involved."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from distributed import Client, LocalCluster
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.states import Failed

import tasks.executors.prefect_dask
from mudg_core.errors import (
    CredentialsError,
    DataError,
    OrchestrationError,
    StorageError,
    UnwantedError,
    VersionError,
)
from mudg_core.retries import PREFECT_SERVER
from mudg_core.settings import ComputeSettings, Settings, load_settings
from mudg_core.storage import Facts
from tasks.executors.prefect_dask import PrefectOnDask, _result, execute
from tasks.policy import Work, stage
from tasks.run import Run

NAME = "model animals, seed 0 3fa9c2d1"
FREE = threading.Event()
ORDER: list[str] = []


def remember(name: str) -> None:
    ORDER.append(name)


@stage("noting")
def note(work: Work, *, name: str) -> Facts:
    remember(name)
    (work.scratch / "name.txt").write_text(name)
    return Facts({})


def hold() -> bool:
    return FREE.wait(30)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    storage = {"url": f"file://{tmp_path}", "cache_dir": str(tmp_path / "cache")}
    return load_settings(overrides={"storage": storage}, environ={})


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> PrefectOnDask:
    """Outside a flow; nobody sleeps."""
    made = PrefectOnDask(ComputeSettings())
    monkeypatch.setattr(made.ending, "wait", lambda seconds: made.ending.is_set())
    monkeypatch.setattr(made, "_listening", lambda *_: nullcontext())
    monkeypatch.setattr(
        tasks.executors.prefect_dask, "get_run_logger", lambda: SimpleNamespace(warning=print)
    )
    return made


@pytest.fixture
def busy() -> Iterator[Client]:
    """A cluster whose only worker has something to do until FREE is set."""
    FREE.clear()
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        held = client.submit(hold, key="held")
        yield client
        FREE.set()
        held.result(timeout=30)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (StorageError(what="x"), True),
        (ConnectionError("x"), True),
        (CredentialsError(what="x"), False),
        (DataError(what="x"), False),
        (OrchestrationError(what="x"), True),
        (VersionError(what="x"), False),
        (UnwantedError(what="x"), False),
        (TypeError("x"), False),
    ],
)
def test_only_what_can_be_helped_is_tried_again(error: Exception, again: bool) -> None:
    condition: Any = execute.retry_condition_fn
    assert condition(execute, None, Failed(data=error)) is again


class Lost:
    """A future whose task never came to an end."""

    key = "model"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self, timeout: float) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (TimeoutError(), "task_timeout_seconds"),
        (NoWorkerError("task", 1.0), "workers start"),
        (NoValidWorkerError("task", set(), set(), {}, 1.0), "workers start"),
        (
            KilledWorker("task", SimpleNamespace(memory_limit=2 << 30), 3),
            "short (a worker has 2.00 GiB): raise compute.memory_limit",
        ),
        (KilledWorker("task", SimpleNamespace(memory_limit=0), 3), "short: raise compute.memory_limit"),
        (FutureCancelledError("task", "scheduler-connection-lost"), "mudg doctor"),
    ],
)
def test_f05_a_task_that_was_lost_says_what_to_do(
    executor: PrefectOnDask, error: Exception, says: str
) -> None:
    """And nobody tries again: Dask has, or there is nobody to try."""
    with pytest.raises(OrchestrationError) as raised, executor._client_lost(NAME, executor.compute):
        _result(None, Lost(error), NAME, 3600)
    assert says in raised.value.fix and NAME in raised.value.what and not raised.value.retryable


def test_f14_a_task_whose_flow_has_ended_says_so(executor: PrefectOnDask) -> None:
    executor.ending.set()
    with pytest.raises(UnwantedError), executor._client_lost(NAME, executor.compute):
        raise FutureCancelledError("task", "client-closed")


@stage("slow")
def unforeseen(work: Work) -> Facts:
    raise TimeoutError("the stage's")


def test_an_error_of_a_stage_is_its_own(settings: Settings, executor: PrefectOnDask, busy: Client) -> None:
    """A time-out of the stage is not Dask's; and its log says where it was raised."""
    FREE.set()
    executor._client = busy
    with pytest.raises(TimeoutError, match="the stage's") as raised:
        executor._make(Run(settings), unforeseen, NAME, [unforeseen.recipe(settings, {})], 1)
    assert "in unforeseen" in "".join(raised.value.__notes__)


AWAY = [
    ConcurrencySlotAcquisitionError("nobody answers"),
    RuntimeError("Failed to reach API at http://x/api/"),
    httpx.ConnectError("nobody listens"),
]


def failing(error: Exception, times: int) -> Callable[[], int]:
    left = [error] * times

    def attempt() -> int:
        if left:
            raise left.pop()
        return 7

    return attempt


@pytest.mark.parametrize("error", AWAY)
def test_f16_a_task_that_loses_the_server_is_begun_again(executor: PrefectOnDask, error: Exception) -> None:
    assert executor._with_prefect(NAME, failing(error, PREFECT_SERVER.retries)) == 7


@pytest.mark.parametrize("error", AWAY)
def test_f17_a_server_that_does_not_come_back_is_an_error(executor: PrefectOnDask, error: Exception) -> None:
    with pytest.raises(OrchestrationError, match="Prefect server") as raised:
        executor._with_prefect(NAME, failing(error, PREFECT_SERVER.retries + 1))
    assert NAME in raised.value.what and "mudg doctor" in raised.value.fix


@pytest.mark.parametrize("error", [DataError(what="x"), RuntimeError("x")])
def test_an_error_of_the_stage_is_not_the_servers(executor: PrefectOnDask, error: Exception) -> None:
    with pytest.raises(type(error), match="x"):
        executor._with_prefect(NAME, failing(error, 1))


def test_time_in_line_for_a_worker_does_not_count(busy: Client) -> None:
    timer = threading.Timer(3, FREE.set)
    timer.start()
    try:
        assert _result(busy, busy.submit(abs, -1), NAME, 0.5) == 1
    finally:
        timer.cancel()


def test_a_task_that_has_its_worker_has_its_time_and_no_more(busy: Client) -> None:
    with pytest.raises(OrchestrationError, match="not done after"):
        _result(busy, busy.submit(hold, key="held"), NAME, 0.5)


def test_f11_no_worker_has_the_gpu_resource() -> None:
    """Dask would wait for one for good."""
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        pytest.raises(OrchestrationError, match=NAME) as raised,
    ):
        _result(client, client.submit(abs, -1, resources={"GPU": 1}), NAME, 0.2)
    assert "GPU resource" in raised.value.fix


def test_runs_take_turns_on_a_cluster(settings: Settings, executor: PrefectOnDask, busy: Client) -> None:
    """The many batches of a build were there before; what a batch itself gives to the cluster is next. (Two
    of them Dask has given to the worker already, which keeps them.)"""
    ORDER.clear()
    executor._client = busy
    run, names = Run(settings), [("build", 1), ("build", 2), ("build", 3), ("target", 1)]
    threads = []
    for name, turn in names:
        recipe = note.recipe(settings, {"name": f"{name} {turn}"})
        given = (run, note, name, [recipe], turn)
        threads.append(threading.Thread(target=executor._make, args=given))
        threads[-1].start()
        _until_there_are(busy, len(threads))
    part = busy.submit(remember, "part of a task", pure=False)
    _until_there_are(busy, len(threads) + 1)
    FREE.set()
    for thread in threads:
        thread.join(30)
    part.result(timeout=30)
    assert ORDER.index("part of a task") < ORDER.index("target 1") < ORDER.index("build 3")


def _until_there_are(client: Client, waiting: int) -> None:
    worker, deadline = client.cluster.workers[0], time.monotonic() + 30
    while len(worker.state.ready) + len(client.cluster.scheduler.queued) < waiting:
        assert time.monotonic() < deadline, "they are not in line"
        time.sleep(0.01)
