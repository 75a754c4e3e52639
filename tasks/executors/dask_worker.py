"""A batch on a Dask worker, which knows nothing of Prefect: Dask tells the flow's process how far it is.

A stage is one task, and what runs many times inside it goes to Dask directly, at two milliseconds a piece.
A worker runs stages in threads, where no signal arrives: its main thread gets the SIGTERM (or its nanny
does), and then waits some seconds for running stages, which see that it is closing. Nor does a thread hear
that nobody wants its result any more, because the flow was cancelled or has died: the worker knows, and a
stage that goes on would keep others from the GPU.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from distributed import Status, get_worker, secede, wait, worker_client

from mudg_core.errors import MudgError, OrchestrationError
from mudg_core.index.kmeans import PairShard, Partial, Pool, measure, partial
from mudg_core.index.vectors import Float32
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, Recipe
from tasks.policy import build_batch
from tasks.run import Host
from tasks.stage_progress import Report

T = TypeVar("T")
R = TypeVar("R")
log = logging.getLogger(__name__)

TOPIC = "mudg-reports"  # events of the scheduler, to which the client of the flow's process listens
ENDING = frozenset({Status.closing, Status.closing_gracefully, Status.closed, Status.failed})
QUEUE_SECONDS = 86_400.0  # in which a task must have got a worker
ASK_SECONDS = 20.0  # for a scheduler to answer


def build(
    where: str, settings: Settings, recipes: list[Recipe], part: str, code: str
) -> list[ArtifactRef] | Exception:
    """What the flow's process submits. An error is a result like any other, so that whatever Dask raises is
    Dask's own; of one that nobody foresaw the flow's log shows the lines of code too."""
    try:
        return build_batch(where, settings, recipes, part, code, WorkerHost())
    except Exception as error:
        if not isinstance(error, MudgError):
            error.add_note("".join(traceback.format_exception(error)))
        return error


class WorkerHost(Host):
    """What a stage finds on a Dask worker; to be made by the thread of its task, and used by any."""

    def __init__(self) -> None:
        self.worker: Any = get_worker()
        self.key = self.worker.get_current_task()

    def spread(self, function: Callable[[T], R], items: Sequence[T], seconds: float) -> list[R]:
        """On whichever workers are free."""
        if len(items) < 2:
            return [function(item) for item in items]
        with cluster() as client:
            return list(_gather(client, client.map(function, items, pure=False), seconds))

    @contextmanager
    def pair_pool(
        self, load: Callable[[slice], PairShard], split: Callable[[int], list[slice]], seconds: float
    ) -> Iterator[Pool]:
        """One shard for each worker."""
        with cluster() as client:
            yield DaskPool(client, load, split(len(client.nthreads())), seconds)

    @contextmanager
    def stopping(self) -> Iterator[Callable[[], bool]]:
        yield lambda: self.worker.status in ENDING or self._is_dropped()

    def unwanted(self) -> Callable[[], bool]:
        return self._is_dropped

    def report(self, report: Report) -> None:
        """Who does not hear of it sees less, and nothing else is lost."""
        with suppress(Exception):
            self.worker.log_event(TOPIC, report.to_json())

    def logger(self) -> logging.Logger:
        logger = logging.Logger(__name__)
        logger.addHandler(_ToFlow(self))
        return logger

    def _is_dropped(self) -> bool:
        task = self.worker.state.tasks.get(self.key)
        return task is None or task.state == "cancelled"


class _ToFlow(logging.Handler):
    """Lines for the log of the flow's run."""

    def __init__(self, host: WorkerHost) -> None:
        super().__init__()
        self.host = host

    def emit(self, record: logging.LogRecord) -> None:
        line = {"key": self.host.key, "level": record.levelno, "line": record.getMessage()}
        with suppress(Exception):
            self.host.worker.log_event(TOPIC, line)


@contextmanager
def cluster() -> Iterator[Any]:
    """A client of the cluster that this task runs on. The task leaves its slot for good: to take it back it
    would have to wait for whoever has it by then, perhaps for hours."""
    with worker_client(separate_thread=False) as client:
        with suppress(KeyError):  # it has left it before, and was tried again
            secede()  # type: ignore[no-untyped-call]
        yield client


class DaskPool:
    """Pair shards that stay in the memory of workers; only centroids and sums travel."""

    def __init__(
        self, client: Any, load: Callable[[slice], PairShard], parts: Sequence[slice], seconds: float
    ) -> None:
        self.client, self.seconds = client, seconds
        self.shards = client.map(load, parts, pure=False)

    def iterate(self, centroids: Float32) -> Partial:
        return self._added(partial, centroids)

    def measure(self, centroids: Float32) -> Partial:
        return self._added(measure, centroids)

    def _added(self, function: Callable[[PairShard, Float32], Partial], centroids: Float32) -> Partial:
        """Centroids are broadcast as data, not as part of a task, so the scheduler never holds them."""
        sent = self.client.scatter(centroids, broadcast=True, hash=False)
        level = [self.client.submit(function, shard, sent, pure=False) for shard in self.shards]
        while len(level) > 1:
            level = [self._sum(level[i : i + 2]) for i in range(0, len(level), 2)]
        total: Partial = _gather(self.client, level, self.seconds)[0]
        return total

    def _sum(self, pair: list[Any]) -> Any:
        return self.client.submit(_add, *pair, pure=False) if len(pair) == 2 else pair[0]


def _add(one: Partial, other: Partial) -> Partial:
    return one + other


def _gather(client: Any, futures: list[Any], seconds: float) -> Any:
    """Results in order, or an error: never an endless wait. Each may take so long once it has a worker."""
    deadline, left, done = time.monotonic() + QUEUE_SECONDS, seconds, False
    while not done:
        try:
            wait(futures, timeout=left)  # type: ignore[no-untyped-call]
            done = True
        except TimeoutError as error:
            left = min(
                seconds_left(client, [future.key for future in futures], seconds),
                deadline - time.monotonic(),
            )
            if left <= 0:
                raise OrchestrationError(
                    what=f"the cluster was not done after {seconds:.0f} s",
                    fix="see that workers are there, or raise compute.task_timeout_seconds",
                ) from error
    return client.gather(futures)  # raises what a worker has raised


def seconds_left(client: Any, keys: Sequence[str], seconds: float) -> float:
    """Of the time that tasks have once a worker runs them: waiting in the queue for one does not count. None
    is left if no worker could run them, or nobody knows them, or the scheduler does not answer."""
    try:
        at_work = client.sync(client._run_on_scheduler, _longest, list(keys), callback_timeout=ASK_SECONDS)
    except Exception as error:
        log.warning("Dask's scheduler does not say whether a task is queued: that counts as work (%r)", error)
        at_work = None
    return 0.0 if at_work is None else seconds - float(at_work)


def _longest(keys: list[str], dask_scheduler: Any) -> float | None:
    """Runs on the scheduler: how long the task that was begun first has been at work; 0 while all wait."""
    times = (_seconds_at_work(dask_scheduler, key) for key in keys)
    return max((time for time in times if time is not None), default=None)


def _seconds_at_work(scheduler: Any, key: str) -> float | None:
    task = scheduler.tasks.get(key)
    state = task.state if task else "forgotten"
    if state == "processing":
        worker = task.processing_on
        # One that has left its slot waits for what it gave to the cluster, which has time-outs of its own.
        return 0.0 if task in worker.long_running else float(worker.executing.get(task, 0.0))
    waits = state in ("memory", "erred", "waiting") or (state == "queued" and bool(scheduler.running))
    return 0.0 if waits else None
