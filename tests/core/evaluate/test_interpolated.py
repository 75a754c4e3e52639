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
from mudg_core.evaluate.gate import Verdict, judge
from mudg_core.evaluate.interpolated import logits_between
from mudg_core.settings import TrainSettings
from mudg_core.target.methods import of_descriptors
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.export import export
from mudg_core.train.finetune import finetune
from mudg_core.train.interpolate import initial_student
from tests.core.encode.tiny import another

Labels = NDArray[np.int64]
KINDS = ("cat", "dog", "fox", "owl", "duck", "shark")
DRAWN = DemoTarget("some", "", KINDS, KINDS, "a photo of a {}.", ("mosaic",))
TARGET = Target(name="some", classes=KINDS)
QUERIES = Queries.of(TARGET, of_descriptors(TARGET, "none", [None]))
QUICK = TrainSettings(iterations=30, batch_size=32, learning_rate=0.04, ema=0.9)
ALPHAS = (0.25, 0.5, 1.0)


@cache
def student() -> Clip:
    return load_clip("demo:student")


@cache
def pictures(per_class: int, seed: int) -> tuple[NDArray[np.uint8], Labels]:
    """Mosaics, which zero-shot knows badly."""
    drawn = list(evaluation_images(DRAWN, "mosaic", per_class, seed))
    return np.stack([student().pixels(image) for image, _ in drawn]), np.array([label for _, label in drawn])


def verdict(labels: Labels, held: Labels, folder: Path, **changes: float) -> Verdict:
    """On a student that was trained on these labels, by images with those."""
    settings = QUICK.model_copy(update=changes)
    tuned = finetune(another(student()), pictures(20, 1)[0], labels, QUERIES.prompts(), settings, seed=0)
    export(tuned.student, QUERIES, folder)
    own = another(student())
    logits = logits_between(own, folder, TARGET.prompts(), pictures(15, 2)[0], ALPHAS, 25.0, 64)
    return judge(logits, held, margin=0)


def test_logits_begin_with_zero_shot_and_end_with_the_student(tmp_path: Path) -> None:
    tuned = initial_student(another(student()), "a photo of")
    with torch.no_grad():
        for parameter in tuned.parameters():
            parameter.add_(0.02 * torch.sign(parameter))
    export(tuned, QUERIES, tmp_path)
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
    found = verdict(pictures(20, 1)[1], pictures(15, 2)[1], tmp_path)
    assert found.better is True and found.alpha > 0
    assert dict.fromkeys(item.alpha for item in found.estimates).keys() == {0.0, *ALPHAS}


@pytest.mark.parametrize("spoilt", ["labels by lot", "classes swapped"])
def test_a_student_of_wrong_labels_is_refused(spoilt: str, tmp_path: Path) -> None:
    random, labels = np.random.default_rng(0), pictures(20, 1)[1]
    wrong = random.permutation(labels) if spoilt == "labels by lot" else (labels + 2) % len(KINDS)
    found = verdict(wrong, pictures(15, 2)[1], tmp_path, iterations=60)
    assert (found.alpha, found.better) == (0.0, False)


def test_one_that_was_trained_to_ruin_is_refused(tmp_path: Path) -> None:
    found = verdict(pictures(20, 1)[1], pictures(15, 2)[1], tmp_path, learning_rate=3.0, weight_decay=0.2)
    assert found.estimates[-1].accuracy < found.estimates[0].accuracy
    assert found.estimates[-1].gain < 0


def test_wrong_labels_that_are_also_judged_by_are_seen_through(tmp_path: Path) -> None:
    """Everything that the search found has its classes swapped: the student is perfect by those labels."""
    swapped = {seed: (pictures(n, seed)[1] + 2) % len(KINDS) for n, seed in ((20, 1), (15, 2))}
    found = verdict(swapped[1], swapped[2], tmp_path, iterations=150)
    assert found.estimates[-1].gain > 0
    assert (found.alpha, found.better) == (0.0, False)
