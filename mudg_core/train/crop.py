"""Random resized crops and flips, drawn for a whole batch and taken a chunk at a time."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def draw_crops(count: int, smallest: float, random: torch.Generator) -> Tensor:
    """Where to crop (and whether to mirror) `count` images, as affine maps (count, 2, 3)."""
    area = smallest + (1 - smallest) * torch.rand(count, generator=random)
    widest = (-area.log()).clamp(max=math.log(4 / 3))  # no side longer than the image, or area would shrink
    ratio = torch.exp((torch.rand(count, generator=random) * 2 - 1) * widest)
    wide, high = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    right, down = ((torch.rand(count, generator=random) * 2 - 1) * (1 - side) for side in (wide, high))
    flip = (torch.rand(count, generator=random) < 0.5).float() * 2 - 1
    theta = torch.zeros(count, 2, 3)
    theta[:, 0, 0], theta[:, 0, 2], theta[:, 1, 1], theta[:, 1, 2] = wide * flip, right, high, down
    return theta


def crop(images: Tensor, where: Tensor) -> Tensor:
    """All in one sampling of the images (n, 3, h, w)."""
    grid = F.affine_grid(where.to(images.device), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
