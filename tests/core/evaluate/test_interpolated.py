"""What students between two weights say, and the verdict on them: good ones pass, spoilt ones do not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mudg_core.corpus.demo.targets import DemoTarget, evaluation_images
from mudg_core.encode.models import Clip, load_clip
from mudg_core.evaluate.classifier import logits_between
from mudg_core.evaluate.gate import judge
from mudg_core.settings import TrainSettings
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.export import export
from mudg_core.train.finetune import finetune
from mudg_core.train.student import initial_student
from tests.core.encode.tiny import another

Labels = NDArray[np.int64]
Logits = dict[float, NDArray[np.float32]]
KINDS = ("cat", "dog", "fox", "owl", "duck", "shark")
DRAWN = DemoTarget("some", "", KINDS, KINDS, "a photo of a {}.", ("mosaic",))
TARGET = Target(name="some", classes=KINDS)
QUERIES = Queries.of(TARGET, of_descriptors(TARGET, "none", [None]))
QUICK = TrainSettings(blocks=1, iterations=30, batch_size=24, learning_rate=0.1, diversity=0.0, ema=0.8)
ALPHAS = (0.5, 1.0)


@cache
def student() -> Clip:
    return load_clip("demo:student")


@cache
def pictures(per_class: int, seed: int) -> tuple[NDArray[np.uint8], Labels]:
    """Mosaics, which zero-shot knows badly."""
    drawn = list(evaluation_images(DRAWN, "mosaic", per_class, seed))
    return np.stack([student().pixels(image) for image, _ in drawn]), np.array([label for _, label in drawn])


def trained(labels: Labels, folder: Path, settings: TrainSettings = QUICK) -> Logits:
    """What a student trained on these labels, and others on the way to it, say of held-out images."""
    tuned = finetune(another(student()), pictures(20, 1)[0], labels, QUERIES.prompts(), settings, seed=0)
    export(tuned.student, QUERIES, folder, 25.0)
    own = another(student())
    return logits_between(own, folder, TARGET.prompts(), pictures(15, 2)[0], ALPHAS, 25.0, 64)


def test_logits_begin_with_zero_shot_and_end_with_the_student(tmp_path: Path) -> None:
    tuned = initial_student(another(student()), "a photo of")
    with torch.no_grad():
        for parameter in tuned.parameters():
            parameter.add_(0.02 * torch.sign(parameter))
    export(tuned, QUERIES, tmp_path, 25.0)
    pixels = pictures(15, 2)[0][:10]
    found = logits_between(another(student()), tmp_path, TARGET.prompts(), pixels, (0.5, 1.0), 25.0, 4)
    plain = 25 * student().encode_images(pixels) @ student().encode_texts(TARGET.prompts()).T
    with torch.inference_mode():
        texts = tuned.text_features(tuned.tokens(TARGET.prompts())).numpy()
    assert list(found) == [0.0, 0.5, 1.0]
    assert found[0.0] == pytest.approx(plain, abs=1e-3)
    assert found[1.0] == pytest.approx(25 * tuned.clip.encode_images(pixels) @ texts.T, abs=1e-3)
    assert np.abs(found[0.5] - found[0.0]).max() > 1e-2


def test_a_good_student_passes(tmp_path: Path) -> None:
    found = judge(trained(pictures(20, 1)[1], tmp_path), pictures(15, 2)[1], margin=0)
    assert found.better is True and found.alpha in ALPHAS


def test_a_student_of_swapped_classes_is_refused(tmp_path: Path) -> None:
    """Also where everything that the search found has its classes swapped, and it is perfect by those."""
    held = pictures(15, 2)[1]
    logits = trained((pictures(20, 1)[1] + 2) % len(KINDS), tmp_path)
    by_truth, by_swapped = judge(logits, held, margin=0), judge(logits, (held + 2) % len(KINDS), margin=0)
    assert by_truth.estimates[-1].gain < 0 < by_swapped.estimates[-1].gain
    for found in (by_truth, by_swapped):
        assert (found.alpha, found.better) == (0.0, False)


def test_one_that_was_trained_to_ruin_is_refused(tmp_path: Path) -> None:
    ruinous = QUICK.model_copy(update={"iterations": 6, "learning_rate": 3.0, "ema": 0.5})
    found = judge(trained(pictures(20, 1)[1], tmp_path, ruinous), pictures(15, 2)[1], margin=0)
    assert (found.alpha, found.better) == (0.0, False)
