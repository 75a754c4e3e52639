"""What is minimised, chosen by `train.loss`: the diversity-preserving loss (Eq. 5), and what the paper
compares it with.

Logits and the teacher's probabilities are (batch, augmentations, classes); every loss is a mean over both.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from mudg_core.settings import TrainSettings


def training_loss(
    images: Tensor, texts: Tensor, labels: Tensor, teacher: Tensor | None, settings: TrainSettings
) -> Tensor:
    """Of unit-norm features: `images` (batch, dim), `texts` (augmentations, classes, dim)."""
    logits = settings.temperature * cosines(images, texts)
    if settings.loss == "contrastive":
        contrast = supervised_contrastive(images, labels, settings.contrastive_temperature)
        return cross_entropy(logits, labels) + contrast
    if teacher is None:
        return cross_entropy(logits, labels)
    if settings.loss == "soft-labels":
        return soft_labels(logits, teacher)
    return diversity_loss(logits, labels, teacher, settings.diversity)


def needs_teacher(settings: TrainSettings) -> bool:
    return settings.loss == "soft-labels" or (settings.loss == "diversity" and settings.diversity > 0)


def teacher_temperature(settings: TrainSettings) -> float:
    """Soft labels have one of their own: at the student's, the initial student teaches itself what it says
    already, and no gradient ever comes of it."""
    soft = settings.loss == "soft-labels"
    return settings.soft_label_temperature if soft else settings.teacher_temperature


def cosines(images: Tensor, texts: Tensor) -> Tensor:
    """(batch, augmentations, classes)."""
    return torch.einsum("bd,jcd->bjc", images, texts)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.repeat_interleave(logits.shape[1]))


def soft_labels(logits: Tensor, teacher: Tensor) -> Tensor:
    """Cross entropy with what the initial model predicts for the same crop and the same augmentation."""
    return F.cross_entropy(logits.flatten(0, 1), teacher.flatten(0, 1))


def diversity_loss(logits: Tensor, labels: Tensor, teacher: Tensor, diversity: float) -> Tensor:
    """Cross entropy with (1 - lambda) label + lambda initial prediction; the loss is linear in its target.
    lambda = 0 is plain cross entropy, to the bit."""
    hard = cross_entropy(logits, labels)
    return hard if diversity == 0 else torch.lerp(hard, soft_labels(logits, teacher), diversity)


def supervised_contrastive(features: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Khosla et al. (2020), with the mean outside the logarithm: for each image that shares its label with
    others of the batch, minus the mean log-probability of these among all others."""
    scores = temperature * features @ features.T
    self_ = torch.eye(len(features), dtype=torch.bool, device=features.device)
    chances = scores - scores.masked_fill(self_, -torch.inf).logsumexp(dim=1, keepdim=True)
    same = (labels[:, None] == labels) & ~self_
    positives = same.sum(dim=1)
    each = (chances * same).sum(dim=1) / positives.clamp(min=1)
    return -each.sum() / (positives > 0).sum().clamp(min=1)
