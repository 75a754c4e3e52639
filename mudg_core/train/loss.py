"""The diversity-preserving loss (Eq. 5)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def diversity_loss(logits: Tensor, labels: Tensor, teacher: Tensor, diversity: float) -> Tensor:
    """Mean over augmentations of the cross entropy with (1 - lambda) label + lambda initial prediction.

    `logits` and `teacher` are (batch, augmentations, classes); `teacher` holds the probabilities that the
    initial model gives the same crop with the same augmentation. lambda = 0 is plain cross entropy.
    """
    target = (1 - diversity) * F.one_hot(labels, logits.shape[-1]).to(logits.dtype).unsqueeze(1)
    if diversity:
        target = target + diversity * teacher
    return -(target * torch.log_softmax(logits, dim=-1)).sum(dim=-1).mean()
