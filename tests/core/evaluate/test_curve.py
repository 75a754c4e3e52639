"""The way from the initial to the finetuned weights, and that its ends are the two models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from mudg_core.encode.models import Clip
from mudg_core.evaluate.classifier import Sample, alpha_curve, alphas, finetuned, zero_shot
from mudg_core.evaluate.images import EvaluationSet, ListedImages, Source, write_evaluation
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.export import export, open_student
from mudg_core.train.student import Student, initial_student
from tests.core.encode.tiny import another
from tests.core.evaluate.layouts.trees import put

TARGET = Target(name="things", classes=("cat", "car", "hen", "cup"))
QUERIES = Queries.of(TARGET, of_descriptors(TARGET, "random", ["which is wet", "at night"]))


@pytest.fixture
def listed(tmp_path: Path) -> ListedImages:
    names = [
        f"{d}/{c}/{n}.png" for d, most in (("a", 9), ("b", 4)) for c in TARGET.classes for n in range(most)
    ]
    return ListedImages.of(Source(str(put(tmp_path / "set", *names)), list(TARGET.classes), 1))


def moved(clip: Clip) -> Student:
    student = initial_student(another(clip), "a photo of")
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return student


def test_the_ends_are_the_two_models(loaded: Clip, listed: ListedImages, tmp_path: Path) -> None:
    export(moved(loaded), QUERIES, tmp_path, 25.0)
    tuned = open_student(tmp_path, "cpu")
    found = alpha_curve(initial_student(another(loaded), "a photo of"), tuned, QUERIES, listed, 3, 1000)
    assert found.images == 52 and [point.alpha for point in found.points] == [0.0, 0.5, 1.0]
    for point, model in (
        (found.points[0], zero_shot(loaded, QUERIES)),
        (found.points[-1], finetuned(tmp_path, "cpu")),
    ):
        scores = model.scores(listed, 32, 25.0)
        assert (point.single, point.averaged) == (scores["single"].mean, scores["averaged"].mean)


def test_a_sample_has_its_part_of_each_domain(loaded: Clip, listed: ListedImages, tmp_path: Path) -> None:
    sample = Sample.draw(loaded, listed, 13)
    assert {domain: len(labels) for domain, labels in sample.labels.items()} == {"a": 9, "b": 4}
    again = Sample.draw(loaded, listed, 13)
    whole = Sample.draw(loaded, listed, 1000)
    for domain, pixels in sample.pixels.items():
        assert (again.pixels[domain] == pixels).all()
        known = {
            image.tobytes(): label
            for image, label in zip(whole.pixels[domain], whole.labels[domain], strict=True)
        }
        assert [known[image.tobytes()] for image in pixels] == sample.labels[domain].tolist()
    write_evaluation(Source(str(tmp_path / "set"), list(TARGET.classes), 1).read(), tmp_path)
    kept = Sample.draw(loaded, EvaluationSet.open(tmp_path), 13)
    assert all((kept.pixels[domain] == pixels).all() for domain, pixels in sample.pixels.items())
    assert sum(len(labels) for labels in Sample.draw(loaded, listed, 1).labels.values()) == 2  # one of each


def test_alphas() -> None:
    assert alphas(2) == [0.0, 1.0] and alphas(5) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert np.allclose(alphas(11), np.arange(11) / 10)
