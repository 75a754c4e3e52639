"""The way from the initial to the finetuned weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mudg_core.encode.models import Clip
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.export import export, open_student, part_way
from mudg_core.train.student import Student, initial_student, interpolate
from tests.core.encode.tiny import another

PROMPT = "a photo of"


def moved(clip: Clip) -> Student:
    student = initial_student(another(clip), PROMPT)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(0.01)
    return student


def weights(student: Student) -> torch.Tensor:
    return torch.cat([parameter.flatten() for _, parameter in sorted(student.named_parameters())])


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_between(loaded: Clip, alpha: float) -> None:
    start, end = initial_student(another(loaded), PROMPT), moved(loaded)
    before = weights(start), weights(end)
    expected = (1 - alpha) * before[0] + alpha * before[1]
    assert torch.allclose(weights(interpolate(start, end, alpha)), expected, atol=1e-6)
    assert torch.equal(before[0], weights(start)) and torch.equal(before[1], weights(end))


def test_an_exported_student_opens_as_it_was(loaded: Clip, tmp_path: Path) -> None:
    target = Target(name="things", classes=("cat", "car"))
    student = moved(loaded)
    queries = Queries.of(target, of_descriptors(target, "random", ["which is wet"]))
    export(student, queries, tmp_path, temperature=25.0)
    assert torch.equal(weights(open_student(tmp_path, "cpu")), weights(student))


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_part_way_is_between_and_loads_no_more_than_it_needs(
    loaded: Clip, alpha: float, tmp_path: Path
) -> None:
    target = Target(name="things", classes=("cat", "car"))
    start, end = initial_student(another(loaded), PROMPT), moved(loaded)
    queries = Queries.of(target, of_descriptors(target, "random", ["which is wet"]))
    export(end, queries, tmp_path, temperature=25.0)
    asked: list[int] = []

    def initial() -> Clip:
        asked.append(1)
        return another(loaded)

    found = part_way(initial, tmp_path, alpha, "cpu")
    assert torch.allclose(weights(found), weights(interpolate(start, end, alpha)), atol=1e-6)
    assert len(asked) == (alpha < 1)
