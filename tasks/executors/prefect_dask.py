"""Stages as Prefect tasks in the flow's own process, each waiting for a batch that a Dask worker makes.

Prefect shows what runs, and Dask computes it: workers need no way to the Prefect server. What the store has
is recorded in Prefect as Cached without troubling a worker, so a lost Prefect database costs nothing and a
run with nothing to do starts no cluster.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import cached_property, partial
from time import monotonic
from typing import Any, ParamSpec, TypeVar

import httpx
from dask.utils import format_bytes
from distributed import Client
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError
from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.context import TaskRunContext
from prefect.logging import get_run_logger
from prefect.states import Completed
from prefect.task_engine import run_task_sync

from mudg_core.errors import OrchestrationError, UnwantedError
from mudg_core.retries import PREFECT_SERVER, STAGE_TASKS
from mudg_core.settings import ComputeSettings
from mudg_core.storage import ArtifactRef, Recipe
from tasks.code import CODE
from tasks.executors import dask_worker
from tasks.executors.clusters import scheduler
from tasks.executors.dask_worker import QUEUE_SECONDS, TOPIC, seconds_left
from tasks.executors.in_process import ThreadBatch
from tasks.executors.progress import progress_bar
from tasks.policy import Stage
from tasks.run import Progress, Run, silent
from tasks.stage_progress import BOARD, Report

P = ParamSpec("P")
R = TypeVar("R")

MOST_TASKS = 1000  # at a time; each is a thread that waits
UNREACHED = "Failed to reach API"  # how Prefect begins a RuntimeError, which has no class of its own


class PrefectOnDask:
    """The executor of runs inside a Prefect flow, for as long as its block lasts. Its cluster is looked for,
    or started, when the first batch is to be made."""

    def __init__(self, compute: ComputeSettings) -> None:
        self.compute = compute
        self.ending = threading.Event()
        self._bars: dict[str, Progress] = {}
        self._logs: dict[str, Callable[[int, str], None]] = {}
        self._open = ExitStack()

    def __enter__(self) -> PrefectOnDask:
        return self

    def __exit__(self, *error: Any) -> None:
        """Without its client the cluster drops what is under way, and the tasks here end."""
        self.ending.set()
        self._open.__exit__(*error)

    def begin(self, run: Run, stage: Stage[...], name: str, recipes: list[Recipe], turn: int) -> ThreadBatch:
        with scheduler_lost(name, run.settings.compute, OSError, ClosedClientError):
            threads = self._threads
        chosen = _named(execute, stage, name, stage.tags(run.settings))
        make = partial(self._make, run, stage, name, recipes, turn)
        attempt = partial(run_task_sync, chosen, task_run_id=uuid.uuid4(), parameters={"make": make})
        return ThreadBatch(name, threads.submit(copy_context().run, self._with_prefect, name, attempt))

    def record_cached(self, stage: Stage[...], name: str, refs: Sequence[ArtifactRef]) -> None:
        _named(record_cached, stage, name, ())([str(ref) for ref in refs])

    def progress_bar(self, name: str, about: str) -> AbstractContextManager[Progress]:
        return progress_bar(name, about)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        address = self._open.enter_context(scheduler(self.compute))
        threads = ThreadPoolExecutor(MOST_TASKS, thread_name_prefix="task")
        self._open.callback(threads.shutdown, cancel_futures=True)
        self._client: Client = self._open.enter_context(
            Client(address, set_as_default=False)  # type: ignore[no-untyped-call]
        )
        self._client.subscribe_topic(TOPIC, self._hear)
        return threads

    def _with_prefect(self, name: str, attempt: Callable[[], Any]) -> Any:
        """A task needs the Prefect server to get its GPU slot and to give it back. One that is started again
        is back in a minute; what was made meanwhile is in the store."""
        logger = get_run_logger()
        server = replace(PREFECT_SERVER, retryable=_is_prefect_away)
        try:
            return server.call(
                attempt,
                lambda error: logger.warning("%s got no answer from the Prefect server: %s", name, error),
                self._pause,
            )
        except Exception as error:
            if not _is_prefect_away(error):
                raise
            raise OrchestrationError(
                what=f"{name} got no answer from the Prefect server: {error!r}",
                fix="see that it is up (`mudg doctor`), and run again: what is made stays",
            ) from error

    def _make(
        self, run: Run, stage: Stage[...], name: str, recipes: list[Recipe], turn: int
    ) -> list[ArtifactRef]:
        """One attempt, inside a Prefect task. Runs take turns on a cluster that they share: the second batch
        of a stage lets the first of any other pass, and so on, so a target need not wait for the thousand
        batches of an index build. What a batch itself gives to the cluster comes before them all."""
        self._pause(_delay())
        compute, key = run.settings.compute, f"{name} {uuid.uuid4().hex}"
        what = f"{stage.name} {run.part}".strip()
        with self._listening(key, what, recipes), self._client_lost(name, compute):
            future = self._client.submit(
                dask_worker.build,
                *(stage.where, run.settings, recipes, run.part, CODE),
                key=key,
                pure=False,
                priority=-turn,
                resources=stage.resources(run.settings) or None,
            )
            return _result(self._client, future, name, compute.task_timeout_seconds * len(recipes))

    def _pause(self, seconds: float) -> None:
        if self.ending.wait(seconds):
            raise UnwantedError(what="the flow has ended", fix="run it again: what is made stays")

    @contextmanager
    def _client_lost(self, name: str, compute: ComputeSettings) -> Iterator[None]:
        try:
            with scheduler_lost(name, compute, FutureCancelledError, ClosedClientError):
                yield
        except OrchestrationError:
            self._pause(0)  # it is this process that has let go
            raise

    @contextmanager
    def _listening(self, key: str, name: str, recipes: list[Recipe]) -> Iterator[None]:
        """Shows how far the worker says that it is, and logs its lines with the task."""
        logger, task = get_run_logger(), str(recipes[0])
        with progress_bar(name, f"{name}: {recipes[0]}") as bar:
            self._bars[task], self._logs[key] = bar, logger.log
            try:
                yield
            finally:
                self._bars.pop(task, None)
                del self._logs[key]

    def _hear(self, event: tuple[float, Any]) -> None:
        """In the client's thread, of all runs on this cluster."""
        words = event[1]
        if report := Report.from_json(words):
            BOARD.report(report)
            self._bars.get(report.task, silent)(report.share)
        elif isinstance(words, dict) and (log := self._logs.get(words.get("key", ""))):
            log(words["level"], words["line"])


@contextmanager
def scheduler_lost(name: str, compute: ComputeSettings, *errors: type[Exception]) -> Iterator[None]:
    """What a client raises that has lost its scheduler, or never had it, as an error that says so."""
    try:
        yield
    except errors as error:
        raise _final(
            what=f"the Dask scheduler does not answer, and {name} is lost: {error}",
            where=compute.dask_address or "compute.dask_address",
            fix="start it and its workers again (`mudg doctor` asks it), and run again: what is made stays",
        ) from error


def _result(client: Any, future: Any, name: str, seconds: float) -> list[ArtifactRef]:
    """As long as it may take once a worker has it.

    Always by `.result()`: a bare `.wait()` hides that a worker was killed.
    """
    deadline, left = monotonic() + QUEUE_SECONDS, seconds
    while True:
        try:
            made: list[ArtifactRef] | Exception = future.result(timeout=left)
            break
        except TimeoutError as error:
            left = min(seconds_left(client, [future.key], seconds), deadline - monotonic())
            if left <= 0:
                raise _final(
                    what=f"{name} was not done after {seconds:.0f} s",
                    fix="see that a worker is free (and has the GPU resource), or raise "
                    "compute.task_timeout_seconds",
                ) from error
        except (NoWorkerError, NoValidWorkerError) as error:
            raise _final(
                what=f"there is no worker that could run {name}",
                fix="see that workers start (and have the GPU resource), or set compute.dask_address",
            ) from error
        except KilledWorker as error:
            raise _final(
                what=f"{name} took down {error.allowed_failures + 1} workers, one after the other",
                fix=f"most often memory was short{_limit(error)}: raise compute.memory_limit, or make less "
                "at a time (encode.batch_size, train.image_chunk, corpus.rows_per_shard)",
            ) from error
    if isinstance(made, Exception):
        raise made
    return made


def _final(*, what: str, fix: str, where: str = "") -> OrchestrationError:
    """Dask has tried again itself, or nobody is there to try."""
    error = OrchestrationError(what=what, where=where, fix=fix)
    error.retryable = False
    return error


def _limit(error: KilledWorker) -> str:
    """As the worker had it, whoever started that."""
    limit = error.last_worker.memory_limit
    return f" (a worker has {format_bytes(limit)})" if limit else ""


def _is_prefect_away(error: BaseException) -> bool:
    return isinstance(error, ConcurrencySlotAcquisitionError | httpx.TransportError) or (
        isinstance(error, RuntimeError) and UNREACHED in str(error)
    )


def _delay() -> float:
    """Before this attempt of the current Prefect task. Prefect itself would sleep, also when the run ends."""
    context = TaskRunContext.get()
    retry = context.task_run.run_count - 1 if context else 0
    return STAGE_TASKS.delay(retry) if retry > 0 else 0.0


def _is_retryable(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    return isinstance(state.data, BaseException) and STAGE_TASKS.retryable(state.data)


@task(
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=STAGE_TASKS.retries,
    retry_condition_fn=_is_retryable,
    log_prints=False,
)
def execute(make: Callable[[], list[ArtifactRef]]) -> list[ArtifactRef]:
    """The only Prefect task that waits for work."""
    return make()


@task(cache_policy=NO_CACHE, persist_result=False, log_prints=False)
def record_cached(artifacts: list[str]) -> State[None]:
    """Tells Prefect of a batch that the store has: there is no work."""
    return Completed(name="Cached", message="found in the store")


def _named(chosen: Task[P, R], stage: Stage[...], name: str, tags: Iterable[str]) -> Task[P, R]:
    """As people see it in Prefect's UI, which fills in braces."""
    shown = name.replace("{", "{{").replace("}", "}}")
    return chosen.with_options(name=stage.name, task_run_name=shown, tags=tags)
