"""Chunks change how much is in memory, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mudg_core.encode.models import Clip
from mudg_core.train.batches import Prompts
from mudg_core.train.finetune import Encoded
from mudg_core.train.student import Student
from tests.core.encode.tiny import another
from tests.core.train.test_finetune import PROMPTS, settings, train, weights

LOSSES = ["diversity", "cross-entropy", "soft-labels", "contrastive"]


@pytest.mark.parametrize("loss", LOSSES)
def test_any_size_trains_alike(loaded: Clip, loss: str) -> None:
    given: dict[str, Any] = {"loss": loss, "min_crop": 0.5, "learning_rate": 0.01, "iterations": 2}
    whole = train(loaded, image_chunk=8, text_chunk=6, **given)
    for image_chunk, text_chunk in [(1, 1), (3, 4), (8, 2), (5, 6)]:
        parts = train(loaded, image_chunk=image_chunk, text_chunk=text_chunk, **given)
        assert parts.losses == pytest.approx(whole.losses, abs=1e-5)
        for name, expected in weights(whole).items():
            assert torch.allclose(weights(parts)[name], expected, atol=1e-5), name
    start = train(loaded, **given | {"iterations": 1, "learning_rate": 1e-30})
    moved = max((weights(start)[name] - tensor).abs().max() for name, tensor in weights(whole).items())
    assert moved > 1e-3  # or the comparison would say little


def counted(student: Student, chunks: list[torch.Tensor]) -> int:
    calls = []

    def encode(tokens: torch.Tensor) -> torch.Tensor:
        calls.append(len(tokens))
        return student.text_features(tokens)

    found = Encoded(encode, chunks)
    found.features.square().sum().backward()
    found.backward()
    return len(calls)


def test_one_chunk_goes_forward_once(loaded: Clip) -> None:
    student = Student(another(loaded), 2, "a photo of")
    tokens = student.tokens(PROMPTS[0])
    assert counted(student, [tokens]) == 1
    assert counted(student, list(tokens.split(2))) == 4


def test_prompts_come_back_where_they_were(loaded: Clip) -> None:
    student = Student(another(loaded), 2, "a photo of")
    tokens = [student.tokens(texts) for texts in PROMPTS]
    asked = Prompts.of(tokens, student.ends, 2)
    ends = torch.cat([student.ends(chunk) for chunk in asked.chunks]).tolist()
    assert ends == sorted(ends) and len(asked.chunks) == 3
    with torch.no_grad():
        features = torch.cat([student.text_features(chunk) for chunk in asked.chunks])
        expected = torch.stack([student.text_features(each) for each in tokens])
    assert torch.allclose(asked.arranged(features), expected, atol=1e-6)
    assert settings().text_chunk >= 6  # the other tests of training are of one chunk
