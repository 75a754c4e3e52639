"""One run of a flow: its settings, its store, and a record of what each stage did."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from mudg_core.encode.weights import vision_width
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.storage.leases import LeaseHolder

Done = Callable[[int], None]


@dataclass(frozen=True)
class StageRecord:
    """What a stage did in this run: artifacts that it found, artifacts that it made, wall time."""

    stage: str
    cached: int
    computed: int
    seconds: float


class Watcher(Protocol):
    """Shows a stage to a person while it runs; `done` is told how many of its artifacts are there."""

    def __call__(
        self, stage: str, part: str, artifacts: int, cached: int
    ) -> AbstractContextManager[Done]: ...


@contextmanager
def unwatched(stage: str, part: str, artifacts: int, cached: int) -> Iterator[Done]:
    yield lambda done: None


# Not a flow parameter: Prefect records parameters, and a terminal is none.
WATCHER: ContextVar[Watcher] = ContextVar("watcher", default=unwatched)


@dataclass
class Run:
    """Passed through a flow by hand: explicit, so that a test can look at it."""

    settings: Settings
    records: list[StageRecord] = field(default_factory=list)
    part: str = ""  # which part of a flow this is, where stages occur more than once

    def __post_init__(self) -> None:
        """Settings that follow from others become numbers here, before any key is made of them."""
        train = self.settings.train
        train = train.for_student(vision_width(train.model))
        evaluate = self.settings.evaluate
        evaluate = evaluate.model_copy(update={"demo_images_per_class": evaluate.demo_images})
        self.settings = self.settings.model_copy(update={"train": train, "evaluate": evaluate})
        self.store = ArtifactStore(self.settings.storage)
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
    def watch(self, stage: str, artifacts: int, cached: int) -> Iterator[Done]:
        started = time.monotonic()
        with WATCHER.get()(stage, self.part, artifacts, cached) as done:
            yield done
        seconds = time.monotonic() - started
        self.records.append(StageRecord(stage, cached, artifacts - cached, seconds))
