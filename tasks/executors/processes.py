"""Stages in processes of this machine, without any server: what commands use where nobody has named servers.

As many workers as `compute.workers` says, each with one thread for arithmetic, like those of a Dask
cluster: so the bytes are the same. They are joblib's loky processes, which need no guard around a script's
main part, and end with this process.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend import resource_tracker

from mudg_core.errors import OrchestrationError
from mudg_core.processes import stops_with_parent
from mudg_core.storage import ArtifactRef, Recipe
from tasks.executors import in_process
from tasks.executors.in_process import SAVE_SECONDS, ThreadHost, build
from tasks.executors.report_socket import report_address, send_to
from tasks.policy import Stage
from tasks.run import Progress, Run, silent

log = logging.getLogger(__name__)

LOST_WORKERS = 3  # by one batch, one after the other: then it is the batch
IDLE_SECONDS = 600  # after which a worker ends by itself
WAIT_SECONDS = 86_400.0  # for a batch that stands in line
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


class LocalProcesses:
    """The executor of commands on one machine."""

    def begin(self, run: Run, stage: Stage[...], name: str, recipes: list[Recipe], turn: int) -> ProcessBatch:
        return ProcessBatch(run, stage, name, recipes, _submit(run, stage, name, recipes))

    def record_cached(self, stage: Stage[...], name: str, refs: Sequence[ArtifactRef]) -> None:
        """Nobody watches but the terminal, which hears of it by `Run.watch`."""

    def progress_bar(self, name: str, about: str) -> AbstractContextManager[Progress]:
        return nullcontext(silent)


@dataclass(frozen=True)
class ProcessBatch:
    """A batch that a worker makes."""

    run: Run
    stage: Stage[...]
    name: str
    recipes: list[Recipe]
    future: Future[list[ArtifactRef]]

    def result(self) -> list[ArtifactRef]:
        """A worker that was killed takes all batches with it that were under way; whoever waits for one
        begins it again, and finds in the store what was committed."""
        future = self.future
        for lost in range(LOST_WORKERS + 1):
            try:
                return future.result(timeout=WAIT_SECONDS)
            except BrokenExecutor:
                if lost < LOST_WORKERS:
                    log.warning("a worker was killed; %s is begun again", self.name)
                    future = _submit(self.run, self.stage, self.name, self.recipes)
        raise OrchestrationError(
            what=f"{self.name} took down {LOST_WORKERS + 1} workers, one after the other",
            fix="most often memory was short: make less at a time (encode.batch_size, train.image_chunk, "
            "corpus.rows_per_shard), or lower compute.workers",
        )


def _submit(run: Run, stage: Stage[...], name: str, recipes: list[Recipe]) -> Future[list[ArtifactRef]]:
    seconds = run.settings.compute.task_timeout_seconds * len(recipes)
    with _without_ctrl_c():
        future: Future[list[ArtifactRef]] = _workers(run.settings.compute.workers).submit(
            build, stage.where, run.settings, recipes, run.part, ThreadHost(name, seconds)
        )
    return future


def _workers(count: int) -> Any:
    """One pool for all runs of this process; started with the first batch."""
    return get_reusable_executor(
        max_workers=count,
        timeout=IDLE_SECONDS,
        env=ONE_THREAD,
        initializer=_begin,
        initargs=(os.getpid(), report_address()),
    )


@contextmanager
def closing() -> Iterator[None]:
    """Workers end with the block: at once if it ends in order, as they stand idle; else they are asked to
    save what they have, and ended."""
    try:
        yield
    except BaseException:
        _end_workers(SAVE_SECONDS)
        raise
    _end_workers(0.0)


def _end_workers(seconds: float) -> None:
    from joblib.externals.loky import reusable_executor

    pool: Any = reusable_executor._executor
    if pool is None:
        return
    if seconds:
        workers = list((pool._processes or {}).values())
        for worker in workers:
            with suppress(OSError):
                os.kill(worker.pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(worker.is_alive() for worker in workers):
            time.sleep(0.05)
    pool.shutdown(wait=True, kill_workers=True)


def _begin(parent: int, reports: str) -> None:
    """In a worker. Ctrl-C is for the command, which ends its workers; SIGTERM asks a stage to save its
    work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    stops_with_parent(parent)
    send_to(reports)


def _stop(*_: Any) -> None:
    """A stage that can save its work sees it, and so does one that tells how far it is; what does neither
    ends a moment later."""
    in_process.ending.set()
    timer = threading.Timer(SAVE_SECONDS, os._exit, (128 + signal.SIGTERM,))
    timer.daemon = True
    timer.start()


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Processes that begin in the block have it blocked until they ignore it themselves. The resource tracker
    comes first, as whoever starts it hears the signal again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
