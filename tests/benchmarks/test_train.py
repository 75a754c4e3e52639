"""The training benchmark compares like with like."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks.train.__main__ import PARTS, TINY
from benchmarks.train.case import DEMO, VIT, Case
from benchmarks.train.sides import SIDES, take_turns, time_steps
from mudg_core.encode.models import load_clip

SMALL = Case("demo:student", classes=4, augmentations=2, batch=8, image_chunk=8, text_chunk=8)


def test_both_sides_come_to_the_same_losses_and_weights() -> None:
    """With the settings that are timed: rate of the soft prompt, weight decay and average included."""
    clip = load_clip("demo:student")
    inputs = SMALL.inputs(clip.image_size)
    losses: dict[str, list[float]] = {side: [] for side in SIDES}
    weights: dict[str, dict[str, Tensor]] = {}
    for side, train in SIDES.items():
        own = dataclasses.replace(clip, network=copy.deepcopy(clip.network))

        def progress(step: int, loss: float, rate: float, kept: list[float] = losses[side]) -> None:
            kept.append(loss)

        result = train(own, *inputs, SMALL.settings(3), 0, progress)
        weights[side] = result.student.trained_parameters() if side == "ours" else result
    assert losses["ours"] == pytest.approx(losses["naive"], abs=1e-4) and len(losses["ours"]) == 3
    assert losses["ours"][0] != losses["ours"][2]
    assert weights["ours"].keys() == weights["naive"].keys()
    for name, tensor in weights["ours"].items():
        torch.testing.assert_close(tensor.detach(), weights["naive"][name], rtol=0, atol=1e-5)


def test_turns_are_taken() -> None:
    threads = torch.get_num_threads()
    ratio, detail = take_turns(SMALL, 1, 2)
    assert [len(detail["cpu_seconds"][side]) for side in ("ours", "naive")] == [2, 2]
    assert ratio > 0 and len(detail["ratios"]) == len(detail["wall_ratios"]) == 2
    assert torch.get_num_threads() == threads
    clip = load_clip("demo:student")
    steps = time_steps(SIDES["ours"], SMALL, clip, SMALL.inputs(clip.image_size), 2)
    assert (len(steps.wall), len(steps.cpu)) == (2, 1)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux alone tells the peak")
def test_memory_of_a_side_in_a_process_of_its_own() -> None:
    line, detail = PARTS["real"](TINY)
    assert 0 < detail["extra_gb"] < detail["peak_gb"] == line["real_peak_gb"] < 5


def test_prompts_are_as_many_as_a_case_says() -> None:
    for case in (DEMO, VIT):
        prompts = case.prompts()
        assert (len(prompts), {len(row) for row in prompts}) == (case.augmentations, {case.classes})
        assert case.batch <= case.image_chunk and case.classes * case.augmentations <= case.text_chunk
