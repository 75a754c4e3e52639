"""What the steps of a build cost, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from benchmarks.index.peers.measure import Time, timed

Result = TypeVar("Result")


class Costs:
    """Time by the name of a step; a step that is done twice adds up."""

    def __init__(self) -> None:
        self.steps: dict[str, Time] = {}

    def measured(self, step: str, work: Callable[[], Result]) -> Result:
        result: Result
        result, took = timed(work)
        before = self.steps.get(step, Time(0.0, 0.0))
        self.steps[step] = Time(before.cpu + took.cpu, before.wall + took.wall)
        return result


def total(times: Iterable[Time]) -> Time:
    kept = list(times)
    return Time(sum(time.cpu for time in kept), sum(time.wall for time in kept))
