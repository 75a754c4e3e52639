"""The training benchmark compares like with like."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import pytest

from benchmarks.train.__main__ import PARTS, TINY
from benchmarks.train.case import DEMO, VIT, Case
from benchmarks.train.sides import SIDES, seconds_of_steps, take_turns
from mudg_core.encode.models import load_clip

SMALL = Case("demo:student", classes=4, augmentations=2, batch=8, image_chunk=8, text_chunk=8)


def test_both_sides_come_to_the_same_losses() -> None:
    clip = load_clip("demo:student")
    inputs = SMALL.inputs(clip.image_size)
    losses: dict[str, list[float]] = {}
    for side, train in SIDES.items():
        own = dataclasses.replace(clip, network=copy.deepcopy(clip.network))
        told = losses.setdefault(side, [])
        settings = SMALL.settings(3).model_copy(update={"prompt_rate_factor": 1.0, "weight_decay": 0.0})
        train(own, *inputs, settings, 0, lambda step, loss, rate, told=told: told.append(loss))
    assert losses["ours"] == pytest.approx(losses["naive"], abs=1e-4) and len(losses["ours"]) == 3
    assert losses["ours"][0] != losses["ours"][2]


def test_turns_are_taken() -> None:
    ratio, detail = take_turns(SMALL, 1, 2)
    assert [len(detail["seconds"][side]) for side in ("ours", "naive")] == [2, 2]
    assert ratio > 0 and len(detail["ratios"]) == 2
    clip = load_clip("demo:student")
    assert len(seconds_of_steps(SIDES["ours"], SMALL, clip, SMALL.inputs(clip.image_size), 2)) == 2


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux alone tells the peak")
def test_memory_of_a_side_in_a_process_of_its_own() -> None:
    line, detail = PARTS["real"](TINY)
    assert 0 < detail["extra_gb"] < detail["peak_gb"] == line["real_peak_gb"] < 5


def test_prompts_are_as_many_as_a_case_says() -> None:
    for case in (DEMO, VIT):
        prompts = case.prompts()
        assert (len(prompts), {len(row) for row in prompts}) == (case.augmentations, {case.classes})
        assert case.batch <= case.image_chunk and case.classes * case.augmentations <= case.text_chunk
