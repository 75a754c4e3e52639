"""Losses against their definitions as loops, against each other and numerical gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from mudg_core.settings import TrainSettings
from mudg_core.train.loss import (
    cosines,
    cross_entropy,
    diversity_loss,
    needs_teacher,
    soft_labels,
    supervised_contrastive,
    training_loss,
)


def case(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(5, 3, 4, generator=random, dtype=torch.double)
    teacher = torch.randn(5, 3, 4, generator=random, dtype=torch.double).softmax(dim=-1)
    return logits, torch.randint(0, 4, (5,), generator=random), teacher


def features(seed: int = 0, images: int = 6) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(images, 7, generator=random, dtype=torch.double), dim=-1)


def test_cross_entropy_is_averaged_over_augmentations() -> None:
    logits, labels, _ = case()
    expected = sum(F.cross_entropy(logits[:, j], labels) for j in range(3)) / 3
    assert cross_entropy(logits, labels).item() == pytest.approx(float(expected))


def test_lambda_zero_is_cross_entropy_to_the_bit() -> None:
    for seed in range(20):
        logits, labels, teacher = (x.float() if x.is_floating_point() else x for x in case(seed))
        logits.requires_grad_()
        (one,) = torch.autograd.grad(diversity_loss(logits, labels, teacher, 0.0), logits)
        (two,) = torch.autograd.grad(cross_entropy(logits, labels), logits)
        assert torch.equal(one, two)
        assert torch.equal(diversity_loss(logits, labels, teacher, 0.0), cross_entropy(logits, labels))


@pytest.mark.parametrize("diversity", [0.0, 0.2, 0.7, 1.0])
def test_equals_the_loops(diversity: float) -> None:
    logits, labels, teacher = case(1)
    total = 0.0
    for b in range(5):
        for j in range(3):
            scores = logits[b, j].tolist()
            normaliser = math.log(sum(math.exp(s) for s in scores))
            for c in range(4):
                target = (1 - diversity) * (c == labels[b].item()) + diversity * teacher[b, j, c].item()
                total -= target * (scores[c] - normaliser)
    assert diversity_loss(logits, labels, teacher, diversity).item() == pytest.approx(total / 15)


LOGIT_LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "diversity": lambda x, labels, teacher: diversity_loss(x, labels, teacher, 0.2),
    "cross-entropy": lambda x, labels, teacher: cross_entropy(x, labels),
    "soft-labels": lambda x, labels, teacher: soft_labels(x, teacher),
}


@pytest.mark.parametrize("name", LOGIT_LOSSES)
def test_gradient_by_logits(name: str) -> None:
    logits, labels, teacher = case(2)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: LOGIT_LOSSES[name](x, labels, teacher), (logits,))


@pytest.mark.parametrize("name", [*LOGIT_LOSSES, "contrastive"])
def test_gradient_by_features(name: str) -> None:
    """The whole way: images and texts to the loss that settings choose."""
    images, texts = features(3), features(4, 12).view(3, 4, 7)
    labels, teacher = torch.tensor([0, 1, 1, 3, 0, 0]), (4 * cosines(features(5), texts)).softmax(dim=-1)
    settings = TrainSettings(loss=name)
    given = teacher if needs_teacher(settings) else None
    inputs = (images.requires_grad_(), texts.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, t: training_loss(x, t, labels, given, settings), inputs)


def test_lambda_one_is_least_at_the_teacher() -> None:
    _, labels, teacher = case(3)
    logits = teacher.log().requires_grad_()
    diversity_loss(logits, labels, teacher, 1.0).backward()
    assert logits.grad is not None and logits.grad.abs().max().item() < 1e-12


def contrastive_by_loops(images: torch.Tensor, labels: list[int], temperature: float) -> float:
    """Khosla et al. (2020), Eq. 2, averaged over the images that have a companion."""
    scores, each = temperature * images @ images.T, []
    for i, label in enumerate(labels):
        others = [j for j in range(len(labels)) if j != i]
        companions = [j for j in others if labels[j] == label]
        if companions:
            all_ = sum(math.exp(scores[i, j]) for j in others)
            each.append(-sum(math.log(math.exp(scores[i, j]) / all_) for j in companions) / len(companions))
    return sum(each) / len(each)


@pytest.mark.parametrize("labels", [[0, 1, 1, 3, 0, 0], [2, 2, 2, 2, 2, 2], [0, 1, 2, 3, 4, 4]])
def test_supervised_contrastive_by_its_definition(labels: list[int]) -> None:
    images = features(6)
    found = supervised_contrastive(images, torch.tensor(labels), 10.0).item()
    assert found == pytest.approx(contrastive_by_loops(images, labels, 10.0))


def test_without_companions_there_is_nothing_to_contrast() -> None:
    images = features(7).requires_grad_()
    loss = supervised_contrastive(images, torch.arange(6), 10.0)
    loss.backward()
    assert loss.item() == 0 and images.grad is not None and images.grad.abs().max().item() == 0


def test_settings_choose() -> None:
    images, texts = features(8), features(9, 12).view(3, 4, 7)
    labels, logits = torch.tensor([0, 1, 1, 3, 0, 0]), 25 * cosines(images, texts)
    teacher = (10 * cosines(features(10), texts)).softmax(dim=-1)
    contrast = supervised_contrastive(images, labels, 7.0)
    expected = {
        "diversity": 0.6 * cross_entropy(logits, labels) + 0.4 * soft_labels(logits, teacher),
        "cross-entropy": cross_entropy(logits, labels),
        "soft-labels": soft_labels(logits, teacher),
        "contrastive": cross_entropy(logits, labels) + contrast,
    }
    for name, loss in expected.items():
        settings = TrainSettings(loss=name, diversity=0.4, contrastive_temperature=7.0)
        given = teacher if needs_teacher(settings) else None
        assert training_loss(images, texts, labels, given, settings).item() == pytest.approx(loss.item())
    assert [needs_teacher(TrainSettings(loss=name)) for name in expected] == [True, False, True, False]
    assert not needs_teacher(TrainSettings(diversity=0.0))
