"""Ours and the naive way, timed by the step."""

from __future__ import annotations

import copy
import dataclasses
import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.train.case import Case
from benchmarks.train.naive import finetune_naively
from mudg_core.encode.models import Clip
from mudg_core.train.finetune import finetune

Trainer = Callable[..., Any]
SIDES: dict[str, Trainer] = {"ours": finetune, "naive": finetune_naively}


def seconds_of_steps(
    train: Trainer, case: Case, clip: Clip, inputs: tuple[Any, ...], steps: int
) -> list[float]:
    """What comes before the first step is not counted; training changes the model that it is given."""
    seconds: list[float] = []

    def told(step: int, loss: float, rate: float) -> None:
        seconds.append(case.batch / rate)

    train(clip, *inputs, case.settings(steps), 0, told)
    return seconds


def take_turns(case: Case, steps: int, rounds: int) -> tuple[float, dict[str, Any]]:
    """Median over rounds of naive seconds over ours. A round is some steps of each, one after the other; the
    first step of each is slower, and left out."""
    clip = case.clip()
    inputs = case.inputs(clip.image_size)
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side, train in SIDES.items():
            own = dataclasses.replace(clip, network=copy.deepcopy(clip.network))
            taken[side].append(statistics.median(seconds_of_steps(train, case, own, inputs, steps + 1)[1:]))
    ratios = [naive / ours for ours, naive in zip(taken["ours"], taken["naive"], strict=True)]
    return statistics.median(ratios), {"case": dataclasses.asdict(case), "seconds": taken, "ratios": ratios}
