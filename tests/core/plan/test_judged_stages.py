"""Costs of judging, scoring and handing over one model, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mudg_core.plan.target_stages import (
    classifier,
    evaluation,
    fetch,
    gate,
    held_out,
    leaks,
    prints,
    scores,
    zero_shot,
)
from tests.core.plan.making import paper, small


def test_the_gate_takes_what_training_leaves() -> None:
    """Of 1000 candidates of ten classes 160 are trained on, and twelve a class held out; or none is left."""
    assert small().held_out == 120
    assert small(gate={"images": 30}).held_out == 30 and small(gate={"images": 1}).held_out == 10
    none = small(dataset={"per_class": 100})
    assert none.held_out == 0 and held_out(none).flop == 0
    assert paper().held_out == 2000  # two of each of 1000 classes


def test_held_out_images_are_fetched_as_others_are() -> None:
    """160 images of the training set beside 480 that may be held out, to find copies."""
    work, made = small(), held_out(small())
    assert made.flop == 120 * work.encoder.image.flop + 2 * 160 * 480 * 128
    assert made.written == pytest.approx(fetch(work).written * 120 / 160)


def test_gate_by_hand() -> None:
    """Zero-shot and four weights: 120 images and ten prompts each."""
    work, made = small(), gate(small())
    assert made.flop == 5 * (120 * work.student.image.flop + 10 * work.student.text.flop)
    one = gate(small(gate={"alphas": [1.0]}))
    assert one.flop * 5 == made.flop * 2 and one.memory == made.memory
    assert made.memory > 3 * 4 * work.student.parameters and made.written == 0


def test_evaluation_images_are_copied_compared_and_scored() -> None:
    """20 images of each of ten classes; 160 queries and ten plain prompts."""
    work = small()
    image, text = work.student.image.flop, work.student.text.flop
    assert work.tested == 200 and evaluation(work).written == pytest.approx(fetch(work).written * 200 / 160)
    assert prints(work).flop == 200 * work.encoder.image.flop
    assert leaks(work).flop == 2 * 1000 * 200 * 128
    assert zero_shot(work).flop == 200 * image + 170 * text
    assert scores(work).flop == (2 + 5) * 200 * image + 5 * 170 * text  # two arms, and a curve of five points
    plain = small(evaluate={"alpha_points": 0})
    assert scores(plain).flop == 2 * 200 * image and scores(plain).memory < scores(work).memory


def test_the_curve_takes_some_of_the_images() -> None:
    few, many = (scores(replace(small(), tested=count)).flop for count in (512, 1512))
    assert many - few == 2 * 1000 * small().student.image.flop


def test_a_classifier_is_a_model_and_its_text_features() -> None:
    work, made = small(), classifier(small())
    assert made.flop == 170 * work.student.text.flop
    assert made.written == 4 * (work.student.parameters + 2 * 10 * work.student.dim)
