"""One run of a flow: its settings, its store, its executor, and a record of what each stage did."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mudg_core.encode.weights import absolute, vision_width
from mudg_core.index.model_names import resolved_model
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Recipe
from mudg_core.storage.gc.leases import LeaseHolder
from tasks.stage_progress import BOARD, Report, StageProgress

if TYPE_CHECKING:
    from mudg_core.index.kmeans import PairShard, Pool
    from tasks.policy import Stage

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[float], None]


def silent(share: float) -> None:
    """For work that nobody watches."""


def counted(items: Iterable[T], total: int, progress: Progress) -> Iterator[T]:
    """The items, one after the other; whoever takes the next is done with those before."""
    for number, item in enumerate(items):
        progress(number / max(total, 1))
        yield item


@dataclass(frozen=True)
class StageRecord:
    """What a stage did in this run: artifacts that it found, artifacts that it made, and the time in which
    any of its tasks was at work."""

    stage: str
    cached: int
    computed: int
    seconds: float


class Watcher(Protocol):
    """Shows a stage to a person while its results are waited for."""

    def __call__(self, progress: StageProgress) -> AbstractContextManager[None]: ...


def unwatched(progress: StageProgress) -> AbstractContextManager[None]:
    return nullcontext()


# Not a flow parameter: Prefect records parameters, and a terminal is none.
WATCHER: ContextVar[Watcher] = ContextVar("watcher", default=unwatched)


class Host(Protocol):
    """What a stage's function is given by whoever runs it: the machinery around one task."""

    def spread(self, function: Callable[[T], R], items: Sequence[T], seconds: float) -> list[R]:
        """`function` of each item, in order, wherever there is room."""
        ...

    def pair_pool(
        self, load: Callable[[slice], PairShard], split: Callable[[int], list[slice]], seconds: float
    ) -> AbstractContextManager[Pool]:
        """The pairs of a k-means training, spread out."""
        ...

    def stopping(self) -> AbstractContextManager[Callable[[], bool]]:
        """A question to ask now and then inside the block, by a stage that can save its work first: is this
        process told to end?"""
        ...

    def unwanted(self) -> Callable[[], bool]:
        """A question for work that has nothing to save: does nobody want its result any more?"""
        ...

    def report(self, report: Report) -> None:
        """Sends to the flow how far a task is; it never raises and never waits."""
        ...

    def logger(self) -> logging.Logger | logging.LoggerAdapter[Any]: ...


class Batch(Protocol):
    """Artifacts that are being made together."""

    def result(self) -> list[ArtifactRef]: ...


class Executor(Protocol):
    """Who runs stages: this process, or Prefect on Dask. Stages know nothing of it."""

    def begin(
        self, run: Run, stage: Stage[...], name: str, recipes: list[Recipe], turn: int
    ) -> Batch | list[ArtifactRef]:
        """Starts one batch. `turn`: which of this stage's batches it is, for those that share workers."""
        ...

    def record_cached(self, stage: Stage[...], name: str, refs: Sequence[ArtifactRef]) -> None:
        """Shows a batch that the store had already."""
        ...

    def progress_bar(self, name: str, about: str) -> AbstractContextManager[Progress]:
        """Over all batches of a stage."""
        ...


# Set by whoever has one to offer; a run without any computes in its own process.
EXECUTOR: ContextVar[Executor | None] = ContextVar("executor", default=None)


def current_executor() -> Executor:
    from tasks.executors.in_process import InProcess

    return EXECUTOR.get() or InProcess()


@contextmanager
def executing(executor: Executor) -> Iterator[None]:
    """Runs that begin in the block use this executor."""
    token = EXECUTOR.set(executor)
    try:
        yield
    finally:
        EXECUTOR.reset(token)


def prepared(settings: Settings) -> Settings:
    """The settings with absolute paths, of a store that was tried: before any work, whoever starts it."""
    settings = _absolute(settings)
    ArtifactStore(settings.storage).check()
    return settings


def _absolute(settings: Settings) -> Settings:
    """Dask workers have working directories of their own."""
    storage = settings.storage
    url = storage.url
    if url.startswith("file://"):
        url = f"file://{Path(url.removeprefix('file://')).expanduser().absolute()}"
    cache = Path(storage.cache_dir).expanduser().absolute()
    models = {area: {"model": absolute(getattr(settings, area).model)} for area in ("encode", "train")}
    return settings.replace({"storage": {"url": url, "cache_dir": str(cache)}, **models}, where="storage")


@dataclass
class Run:
    """Passed through a flow by hand: explicit, so that a test can look at it."""

    settings: Settings
    records: list[StageRecord] = field(default_factory=list)
    part: str = ""  # which part of a flow this is, where stages occur more than once
    executor: Executor = field(default_factory=current_executor)

    def __post_init__(self) -> None:
        """Settings that follow from others become numbers here, before any key is made of them."""
        train = self.settings.train
        train = train.for_student(vision_width(train.model))
        evaluate = self.settings.evaluate
        evaluate = evaluate.model_copy(update={"demo_images_per_class": evaluate.demo_images})
        self.store = ArtifactStore(self.settings.storage)
        encode = self.settings.encode
        encode = encode.model_copy(update={"model": resolved_model(self.store, encode.model)})
        changed = {"encode": encode, "train": train, "evaluate": evaluate}
        self.settings = self.settings.model_copy(update=changed)
        self._lease = LeaseHolder(self.store.objects, self.settings.gc.lease_minutes)
        weakref.finalize(self, self._lease.end)  # also when a flow fails, and when its process ends

    def use(self, refs: Iterable[ArtifactRef]) -> None:
        """Keeps artifacts from garbage collection for as long as this run lasts."""
        self._lease.use(refs)

    def shards_per_task(self, shards: int) -> int:
        """A task costs a second or two whatever is in it, so shards share one; but every worker gets two
        tasks at least, so that none stands idle for long while another finishes."""
        compute = self.settings.compute
        return max(1, min(compute.shards_per_task, -(-shards // (2 * compute.workers))))

    @contextmanager
    def watch(self, progress: StageProgress) -> Iterator[None]:
        """While the results of a stage are waited for. Its record has the time in which it was at work."""
        try:
            with WATCHER.get()(progress):
                yield
        finally:
            BOARD.end(progress)
        computed = progress.artifacts - progress.cached
        self.records.append(StageRecord(progress.stage, progress.cached, computed, progress.seconds))
