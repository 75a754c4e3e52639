"""Eq. 5 against cross entropy, loops and numerical gradients."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from mudg_core.train.loss import diversity_loss


def case(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(5, 3, 4, generator=random, dtype=torch.double)
    teacher = torch.randn(5, 3, 4, generator=random, dtype=torch.double).softmax(dim=-1)
    return logits, torch.randint(0, 4, (5,), generator=random), teacher


def test_lambda_zero_is_cross_entropy_averaged_over_augmentations() -> None:
    logits, labels, teacher = case()
    expected = sum(F.cross_entropy(logits[:, j], labels) for j in range(3)) / 3
    assert diversity_loss(logits, labels, teacher, 0.0).item() == pytest.approx(float(expected))


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


def test_gradient() -> None:
    logits, labels, teacher = case(2)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: diversity_loss(x, labels, teacher, 0.2), (logits,))


def test_lambda_one_is_least_at_the_teacher() -> None:
    _, labels, teacher = case(3)
    logits = teacher.log().requires_grad_()
    diversity_loss(logits, labels, teacher, 1.0).backward()
    assert logits.grad is not None and logits.grad.abs().max().item() < 1e-12
