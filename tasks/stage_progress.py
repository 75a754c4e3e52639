"""Which stages are at work, and how far they are: reported by whoever computes, wherever that is.

A flow starts stages ahead and takes their results later, so how long it waited says nothing of how long a
stage worked: a task in line for a worker does not work, and one that ended long ago is not waited for. So a
task reports its beginning, its share of work done and its end, and the time of a stage is the time in which
at least one of its tasks was at work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

EVERY_SECONDS = 1.0  # reports of one task, at most


@dataclass(frozen=True)
class Report:
    """Of one task, by its first artifact: the share that is done, and of how many steps an artifact takes."""

    task: str
    share: float = 0.0
    steps: int = 0
    unit: str = ""
    ended: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Any) -> Report | None:
        """None for what is no report: whoever sends one must not be able to end a run."""
        try:
            return cls(
                str(values["task"]),
                min(max(float(values["share"]), 0.0), 1.0),
                max(int(values["steps"]), 0),
                str(values["unit"])[:40],
                bool(values["ended"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            return None


@dataclass
class StageProgress:
    """One stage in one part of a run. `tasks` are those under way, with the number of artifacts of each."""

    stage: str
    part: str
    artifacts: int
    cached: int
    tasks: dict[str, int] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    latest: dict[str, Report] = field(default_factory=dict)
    worked: float = 0.0
    since: float | None = None
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.clock()

    def hear(self, report: Report) -> None:
        self.latest[report.task] = report
        self._tick(any(not one.ended for one in self.latest.values()))

    def end(self) -> None:
        """All results are there, or an error ended the stage."""
        self._tick(False)

    def _tick(self, at_work: bool) -> None:
        now = self.clock()
        if self.since is not None and not at_work:
            self.worked, self.since = self.worked + now - self.since, None
        elif self.since is None and at_work:
            self.since = now

    @property
    def at_work(self) -> bool:
        return self.since is not None

    @property
    def seconds(self) -> float:
        """In which a task was at work; since the start if none ever reported."""
        now = self.clock()
        if not self.latest:
            return now - self.begun if self.tasks else 0.0
        return self.worked + (now - self.since if self.since is not None else 0.0)

    @property
    def done(self) -> float:
        """Artifacts, with parts of those under way; without those that were there before."""
        reports = list(self.latest.values())  # others may report meanwhile
        return sum(self.tasks.get(one.task, 1) * (1.0 if one.ended else one.share) for one in reports)

    @property
    def wanted(self) -> int:
        return sum(self.tasks.values())

    def describe(self) -> str:
        """`120/200 steps, 4.1/s, 20 s left`: what is known of it."""
        known = [one for one in list(self.latest.values()) if one.steps]
        share, seconds = self.done / max(1, self.wanted), self.seconds
        if known:
            total = round(sum(one.steps for one in known) / len(known) * self.wanted)
            words = [f"{round(share * total):,}/{total:,} {known[0].unit}"]
            if share and seconds >= 1:
                rate = share * total / seconds
                words.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        else:
            words = [f"{int(self.done)}/{self.wanted}"] if self.wanted > 1 else []
            words += [f"{share:.0%}"] if share else []
        if 0 < share < 1 and seconds >= 1:
            words.append(f"{_span(seconds * (1 - share) / share)} left")
        return ", ".join(words)


class Board:
    """All stages of this process that are under way."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.lock = clock, threading.Lock()
        self.stages: list[StageProgress] = []

    def start(
        self, stage: str, part: str, artifacts: int, cached: int, tasks: dict[str, int]
    ) -> StageProgress:
        progress = StageProgress(stage, part, artifacts, cached, tasks, self.clock)
        with self.lock:
            self.stages.append(progress)
        return progress

    def report(self, report: Report) -> None:
        with self.lock:
            for progress in self.stages:
                if report.task in progress.tasks:
                    progress.hear(report)

    def end(self, progress: StageProgress) -> None:
        with self.lock:
            progress.end()
            self.stages = [one for one in self.stages if one is not progress]

    def at_work(self) -> Sequence[StageProgress]:
        with self.lock:
            return [one for one in self.stages if one.at_work]


BOARD = Board()


class Reporter:
    """In the task: passes reports on, not too many of them."""

    def __init__(
        self, task: str, send: Callable[[Report], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.task, self.send, self.clock = task, send, clock
        self.share, self.steps, self.unit, self.sent = 0.0, 0, "", -EVERY_SECONDS

    def count(self, steps: int, unit: str) -> None:
        """What an artifact takes: 200 steps, 10,000 images."""
        self.steps, self.unit = steps, unit

    def progress(self, share: float) -> None:
        self.share = share
        if self.clock() - self.sent >= EVERY_SECONDS:
            self.sent = self.clock()
            self.send(Report(self.task, share, self.steps, self.unit))


@contextmanager
def reporting(task: str, send: Callable[[Report], None]) -> Iterator[Reporter]:
    """From the beginning of a task to its end."""
    reporter = Reporter(task, send)
    reporter.progress(0.0)
    try:
        yield reporter
    finally:
        send(Report(task, reporter.share, reporter.steps, reporter.unit, ended=True))


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
