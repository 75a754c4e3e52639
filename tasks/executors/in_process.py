"""Stages in this process: no server, no cluster, nothing to start.

As many batches run side by side as `compute.workers` says, each in a thread with one thread of its own for
arithmetic: that is how a Dask worker computes, so the bytes are the same. (How a sum of floats is rounded
depends on how many threads share it.)
"""

from __future__ import annotations

import contextvars
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeVar

from mudg_core.errors import OrchestrationError
from mudg_core.retries import STAGE_TASKS
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, Recipe
from tasks.code import CODE
from tasks.executors.report_socket import send
from tasks.policy import Stage, build_batch
from tasks.run import Host, Progress, Run, silent
from tasks.stage_progress import Report

if TYPE_CHECKING:
    from mudg_core.index.kmeans import PairShard, Pool

T = TypeVar("T")
R = TypeVar("R")
log = logging.getLogger(__name__)
SAVE_SECONDS = 2.0  # that stages have to save their work when the run is ended
ending = threading.Event()  # SIGTERM: stages that can save their work do, the others stop


class InProcess:
    """The executor of runs that were given no other."""

    def begin(self, run: Run, stage: Stage[...], name: str, recipes: list[Recipe], turn: int) -> ThreadBatch:
        seconds = run.settings.compute.task_timeout_seconds * len(recipes)
        context = contextvars.copy_context()
        pool = _pool(run.settings.compute.workers)
        future = pool.submit(
            context.run, build, stage.where, run.settings, recipes, run.part, ThreadHost(name, seconds)
        )
        return ThreadBatch(name, future)

    def record_cached(self, stage: Stage[...], name: str, refs: Sequence[ArtifactRef]) -> None:
        """Nobody watches but the terminal, which hears of it by `Run.watch`."""

    def progress_bar(self, name: str, about: str) -> AbstractContextManager[Progress]:
        return nullcontext(silent)


@dataclass(frozen=True)
class ThreadBatch:
    """A batch that a thread of this process makes."""

    name: str
    future: Future[list[ArtifactRef]]

    def result(self) -> list[ArtifactRef]:
        """Bounded by the batch's own deadline, which it sees whenever it tells how far it is."""
        return self.future.result()


class ThreadHost(Host):
    """What a stage finds in a thread of this process."""

    def __init__(self, name: str = "", seconds: float = float("inf")) -> None:
        self.name, self.seconds = name, seconds

    def spread(self, function: Callable[[T], R], items: Sequence[T], seconds: float) -> list[R]:
        """One after the other: this thread has its share of the cores, and other batches have theirs."""
        return [function(item) for item in items]

    @contextmanager
    def pair_pool(
        self, load: Callable[[slice], PairShard], split: Callable[[int], list[slice]], seconds: float
    ) -> Iterator[Pool]:
        from mudg_core.index.kmeans import LocalPool

        yield LocalPool([load(part) for part in split(1)])

    @contextmanager
    def stopping(self) -> Iterator[Callable[[], bool]]:
        """In the main thread (a script that calls a stage by itself) a SIGTERM no longer ends the process."""
        if threading.current_thread() is not threading.main_thread():
            yield ending.is_set
            return
        told = threading.Event()
        before = signal.signal(signal.SIGTERM, lambda *_: told.set())
        try:
            yield told.is_set
        finally:
            signal.signal(signal.SIGTERM, before)

    def unwanted(self) -> Callable[[], bool]:
        """Also when its time is over: a thread cannot be ended from outside."""
        deadline = time.monotonic() + self.seconds

        def is_unwanted() -> bool:
            if time.monotonic() > deadline:
                raise OrchestrationError(
                    what=f"{self.name} was not done after {self.seconds:.0f} s",
                    fix="raise compute.task_timeout_seconds",
                )
            return ending.is_set()

        return is_unwanted

    def report(self, report: Report) -> None:
        send(report)

    def logger(self) -> logging.Logger:
        return logging.getLogger("mudg")


@contextmanager
def closing() -> Iterator[None]:
    """If the block ends by an error or a signal, batches that are under way are asked to save what they have,
    and get some seconds for it: threads cannot be ended from outside."""
    try:
        yield
    except BaseException:
        ending.set()
        deadline = time.monotonic() + SAVE_SECONDS
        while _blas.inside and time.monotonic() < deadline:
            time.sleep(0.05)
        raise
    finally:
        ending.clear()  # a notebook goes on


def build(where: str, settings: Settings, recipes: list[Recipe], part: str, host: Host) -> list[ArtifactRef]:
    def attempt() -> list[ArtifactRef]:
        with _one_thread(resolve_name(where).gpu):
            return build_batch(where, settings, recipes, part, CODE, host)

    def warn(error: BaseException) -> None:
        log.warning("%s failed and is tried again: %s", recipes[0], error)

    return STAGE_TASKS.call(attempt, warn)


@contextmanager
def _one_thread(needs_torch: bool) -> Iterator[None]:
    """For this thread. OpenMP (torch, faiss, scikit-learn) counts threads for whoever calls it, so torch must
    be there before; BLAS counts them for the process."""
    from threadpoolctl import threadpool_limits

    if needs_torch:
        import torch

        torch.set_num_threads(1)
    with _blas, threadpool_limits(limits=1, user_api="openmp"):
        yield


class _BlasLimit:
    """One thread for as long as any batch computes; what was before comes back after the last."""

    def __init__(self) -> None:
        self.lock, self.inside, self.limit = threading.Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with self.lock:
            if not self.inside:
                self.limit.enter_context(threadpool_limits(limits=1, user_api="blas"))
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.close()


_blas = _BlasLimit()


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Shared by all runs of this process, as a cluster is."""
    return ThreadPoolExecutor(workers, thread_name_prefix="mudg")
