"""A stage under way: its tasks were handed to the cluster, and their results are waited for here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Any

import httpx
from dask.utils import format_bytes
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.futures import PrefectFuture
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelled, Completed, Crashed

from mudg_core.errors import OrchestrationError
from mudg_core.retries import PREFECT_SERVER
from mudg_core.settings import ComputeSettings
from mudg_core.storage import ArtifactRef
from tasks.executors.prefect_artifacts import current_run
from tasks.executors.queue_time import QUEUE_SECONDS, seconds_at_work

log = logging.getLogger(__name__)

SUBMITTING = (OSError, ClosedClientError)  # what a client raises that does not reach its scheduler
UNREACHED = "Failed to reach API"  # how Prefect begins a RuntimeError, which has no class of its own
Future = PrefectFuture[list[dict[str, str]]]


@dataclass(frozen=True)
class TaskBatch:
    """What one task makes, under the name that people see. `again` looks whether it is there by now, and
    starts it anew if not."""

    name: str
    future: Future
    again: Callable[[], TaskBatch | list[ArtifactRef]] | None
    compute: ComputeSettings
    artifacts: int = 1

    def result(self) -> list[ArtifactRef]:
        with scheduler_named(self.name, self.compute, FutureCancelledError):
            return _result_with_retry(self, self.compute.task_timeout_seconds * self.artifacts)


@contextmanager
def scheduler_named(name: str, compute: ComputeSettings, *lost: type[Exception]) -> Iterator[None]:
    """What a client raises that has lost its scheduler, or never had it, as an error that says so. Workers
    without one end without a word, so the server is told of all that the run had under way."""
    try:
        yield
    except lost as error:
        _close_run(Crashed(message="the Dask scheduler was lost"))
        raise OrchestrationError(
            what=f"the Dask scheduler does not answer, and {name} is lost: {error}",
            where=compute.dask_address or "compute.dask_address",
            fix="start it and its workers again (`mudg doctor` asks it), and run again: what is made stays",
        ) from error


def _result_with_retry(batch: TaskBatch, seconds: float) -> list[ArtifactRef]:
    """A task needs the Prefect server to begin, to get its GPU slot, and to give that back at its end. If
    nobody answers it fails at once, retries or not. A server that is started again is back in a minute."""
    delays = PREFECT_SERVER.delays()
    while True:
        try:
            return [ArtifactRef.model_validate(ref) for ref in _result(batch.future, batch.name, seconds)]
        except (ConcurrencySlotAcquisitionError, httpx.TransportError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and UNREACHED not in str(error):
                raise
            delay = next(delays, None)
            if delay is None or batch.again is None:
                raise OrchestrationError(
                    what=f"{batch.name} got no answer from the Prefect server: {error!r}",
                    fix="see that it is up (`mudg doctor`) and that PREFECT_API_URL is an address which "
                    "workers reach too; then run again: what is made stays",
                ) from error
            log.warning("%s got no answer from the Prefect server; retrying in %g s", batch.name, delay)
            sleep(delay)
            again = batch.again()
            if isinstance(again, list):
                _close(batch.future, Completed(message="made; the Prefect server was away when it ended"))
                return again
            _close(batch.future, Cancelled(message="the Prefect server was away; another task does this"))
            batch = again


def _close(future: Future, state: State[Any]) -> None:
    """The server would show a task whose worker is gone, or that never began, as one that is still to end."""
    with suppress(Exception), _asking() as client:
        client.set_task_run_state(future.task_run_id, state, force=True)


def _close_run(state: State[Any]) -> None:
    """The same for all tasks of this flow run that have not ended."""
    flow_run, _ = current_run()
    if flow_run is None:
        return
    open_ = TaskRunFilterState(type=TaskRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING]))
    with suppress(Exception), _asking() as client:
        of_run = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
        for task in client.read_task_runs(flow_run_filter=of_run, task_run_filter=TaskRunFilter(state=open_)):
            client.set_task_run_state(task.id, state, force=True)


def _result(future: Future, name: str, seconds: float) -> list[dict[str, str]]:
    """Waits here and not in the task: Prefect cannot interrupt a task in a Dask worker's thread.

    Always by `.result()`: a bare `.wait()` hides that a worker was killed.
    """
    try:
        return _awaited(future, seconds)
    except (NoWorkerError, NoValidWorkerError) as error:
        raise OrchestrationError(
            what=f"there is no worker that could run {name}",
            fix="see that workers start (and have the GPU resource), or set compute.dask_address",
        ) from error
    except KilledWorker as error:
        what = f"{name} took down {error.allowed_failures + 1} workers, one after the other"
        _close(future, Crashed(message=what))
        raise OrchestrationError(
            what=what,
            fix=f"most often memory was short{_limit(error)}: raise compute.memory_limit, or make less at a "
            "time (encode.batch_size, train.image_chunk, corpus.rows_per_shard)",
        ) from error
    except TimeoutError as error:
        raise OrchestrationError(
            what=f"{name} was not done after {seconds:.0f} s",
            fix="see that a worker is free (and has the GPU resource), or raise compute.task_timeout_seconds",
        ) from error


def _awaited(future: Future, seconds: float) -> list[dict[str, str]]:
    """As long as it may take from when it began. While others have the workers, or the GPU, it has not: it
    stands in line."""
    deadline, left = monotonic() + QUEUE_SECONDS, seconds
    while True:
        try:
            return future.result(timeout=left)
        except TimeoutError:
            left = min(_left(future, seconds), deadline - monotonic())
            if left <= 0:
                raise


def _left(future: Future, seconds: float) -> float:
    """Of the time that a task has once it runs; none if nobody knows it. Prefect hears of a task from its
    worker, so as long as it has none only Dask knows it; that it waits for a GPU only Prefect knows."""
    waiting: Any = getattr(future, "wrapped_future", None)
    at_work = seconds_at_work(waiting.client, [waiting.key]) if waiting else None
    if at_work == 0:
        return seconds
    with suppress(Exception), _asking() as client:
        state = client.read_task_run(future.task_run_id).state
        if state is not None and state.is_pending():
            return seconds
        if state is not None and state.is_running():
            return seconds - (datetime.now(UTC) - state.timestamp).total_seconds()
    return 0.0 if at_work is None else seconds - at_work


@contextmanager
def _asking() -> Iterator[SyncPrefectClient]:
    """Without a server configured Prefect would start one."""
    if not PREFECT_API_URL.value():
        raise OrchestrationError(what="no Prefect server is configured")
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 2}), get_client(sync_client=True) as client:
        yield client


def _limit(error: KilledWorker) -> str:
    """As the worker had it, whoever started that."""
    limit = error.last_worker.memory_limit
    return f" (a worker has {format_bytes(limit)})" if limit else ""
