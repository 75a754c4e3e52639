"""Ours and the naive way, timed by the step.

In CPU time of one thread: whatever else the machine does adds to time on the wall, and threads that wait for
each other burn CPU time. Time on the wall is kept beside it.
"""

from __future__ import annotations

import copy
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from benchmarks.train.case import Case
from benchmarks.train.naive import finetune_naively
from mudg_core.encode.models import Clip
from mudg_core.train.finetune import finetune

Trainer = Callable[..., Any]
SIDES: dict[str, Trainer] = {"ours": finetune, "naive": finetune_naively}


@dataclasses.dataclass(frozen=True)
class Steps:
    """Seconds of each step. What comes before the first is not counted, and its CPU time is not known."""

    wall: list[float]
    cpu: list[float]  # from the second step on


def time_steps(train: Trainer, case: Case, clip: Clip, inputs: tuple[Any, ...], steps: int) -> Steps:
    """Training changes the model that it is given."""
    wall: list[float] = []
    ends: list[float] = []

    def progress(step: int, loss: float, rate: float) -> None:
        wall.append(case.batch / rate)
        ends.append(time.process_time())

    train(clip, *inputs, case.settings(steps), 0, progress)
    return Steps(wall, [after - before for before, after in pairwise(ends)])


def take_turns(case: Case, steps: int, rounds: int) -> tuple[float, dict[str, Any]]:
    """Median over rounds of naive CPU seconds over ours, one thread. A round is some steps of each, one after
    the other; the first step of each is slower, and left out."""
    clip = case.clip()
    inputs = case.inputs(clip.image_size)
    taken: dict[str, list[Steps]] = {side: [] for side in SIDES}
    with one_thread():
        for _ in range(rounds):
            for side, train in SIDES.items():
                own = dataclasses.replace(clip, network=copy.deepcopy(clip.network))
                taken[side].append(time_steps(train, case, own, inputs, steps + 1))
    cpu = {side: [statistics.median(one.cpu) for one in all_] for side, all_ in taken.items()}
    wall = {side: [statistics.median(one.wall[1:]) for one in all_] for side, all_ in taken.items()}
    ratios = _ratios(cpu)
    detail = {"case": dataclasses.asdict(case), "cpu_seconds": cpu, "seconds": wall, "ratios": ratios}
    return statistics.median(ratios), detail | {"wall_ratios": _ratios(wall)}


def _ratios(seconds: dict[str, list[float]]) -> list[float]:
    return [naive / ours for ours, naive in zip(seconds["ours"], seconds["naive"], strict=True)]


@contextmanager
def one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
