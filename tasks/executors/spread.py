"""How one Prefect task uses the whole Dask cluster that it runs on.

Prefect costs a fifth of a second a task, Dask two milliseconds. So a stage is one Prefect task, and what runs
many times inside it goes to Dask directly. Without a cluster (a notebook, a test) the same work runs in this
process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from distributed import get_worker, secede, wait, worker_client

from mudg_core.errors import OrchestrationError
from mudg_core.index.kmeans import LocalPool, PairShard, Partial, Pool, measure, partial
from mudg_core.index.vectors import Float32
from tasks.executors.queue_time import QUEUE_SECONDS, seconds_at_work

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def cluster() -> Iterator[Any | None]:
    """A client of the cluster that this task runs on; None without a cluster. The task leaves its slot for
    good: to take it back it would have to wait for whoever has it by then, perhaps for hours."""
    try:
        get_worker()
    except ValueError:
        yield None
        return
    with worker_client(separate_thread=False) as client:
        with suppress(KeyError):  # it has left it before, and was tried again
            secede()  # type: ignore[no-untyped-call]
        yield client


def spread(function: Callable[[T], R], items: Sequence[T], seconds: float) -> list[R]:
    """`function` of each item, in order, on whichever workers are free."""
    with cluster() as client:
        if client is None or len(items) < 2:
            return [function(item) for item in items]
        return list(_gather(client, client.map(function, items, pure=False), seconds))


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
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [self._sum(pair) for pair in pairs]
        found: Partial = _gather(self.client, level, self.seconds)[0]
        return found

    def _sum(self, pair: list[Any]) -> Any:
        return self.client.submit(_add, *pair, pure=False) if len(pair) == 2 else pair[0]


@contextmanager
def pair_pool(
    load: Callable[[slice], PairShard], split: Callable[[int], list[slice]], seconds: float
) -> Iterator[Pool]:
    """The pairs of a training run, one shard for each worker, or all in this process."""
    with cluster() as client:
        if client is None:
            yield LocalPool([load(part) for part in split(1)])
        else:
            yield DaskPool(client, load, split(len(client.nthreads())), seconds)


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
            at_work = seconds_at_work(client, [future.key for future in futures])
            left = min(0.0 if at_work is None else seconds - at_work, deadline - time.monotonic())
            if left <= 0:
                raise OrchestrationError(
                    what=f"the cluster was not done after {seconds:.0f} s",
                    fix="see that workers are there, or raise compute.task_timeout_seconds",
                ) from error
    return client.gather(futures)  # raises what a worker has raised
