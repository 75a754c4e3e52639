"""What a step of training sees: which images, in which order, how they are cropped, and which prompts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mudg_core.encode.models import Clip, Pixels

WIDEST = math.log(4 / 3)  # of a crop, either way, as torchvision has it
Encode = Callable[[Tensor], Tensor]


class Order:
    """Endless batches of row numbers, each epoch in a new order; a small dataset fills a batch repeatedly."""

    def __init__(self, rows: int, random: torch.Generator) -> None:
        self.rows, self.random = rows, random
        self.waiting = torch.empty(0, dtype=torch.long)  # drawn already, and not shown yet

    def take(self, size: int) -> Tensor:
        while len(self.waiting) < size:
            self.waiting = torch.cat([self.waiting, torch.randperm(self.rows, generator=self.random)])
        taken, self.waiting = self.waiting[:size], self.waiting[size:]
        return taken


def draw_crops(count: int, smallest: float, random: torch.Generator, aspects: Tensor | float = 1.0) -> Tensor:
    """Where to crop (and whether to mirror) `count` images, as affine maps (count, 2, 3).

    `aspects` are the images' widths over their heights. A crop has an area between `smallest` and all of its
    image, as far as its shape allows: of a long image it takes the whole of the short side at most.
    """
    shape = torch.as_tensor(aspects).log().expand(count)
    most = torch.exp(WIDEST - shape.abs()).clamp(max=1)
    least = most.clamp(max=smallest)
    area = least + (most - least) * torch.rand(count, generator=random)
    # Width over height in pixels: no side longer than the image, or area would shrink.
    narrow, broad = (shape + area.log()).clamp(min=-WIDEST), (shape - area.log()).clamp(max=WIDEST)
    drawn = (torch.rand(count, generator=random) * 2 - 1) * (broad - narrow) / 2
    ratio = torch.exp((broad + narrow) / 2 + drawn - shape)
    wide, high = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    right, down = ((torch.rand(count, generator=random) * 2 - 1) * (1 - side) for side in (wide, high))
    flip = (torch.rand(count, generator=random) < 0.5).float() * 2 - 1
    theta = torch.zeros(count, 2, 3)
    theta[:, 0, 0], theta[:, 0, 2], theta[:, 1, 1], theta[:, 1, 2] = wide * flip, right, high, down
    return theta


def crop(images: Tensor, where: Tensor, size: int | None = None) -> Tensor:
    """All in one sampling of the images (n, 3, h, w), to squares of `size` or to their own size."""
    shape = [len(images), 3, *((size, size) if size else images.shape[2:])]
    grid = F.affine_grid(where.to(images.device), shape, align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def crops(clip: Clip, images: Sequence[Pixels], where: Tensor) -> Tensor:
    """As the model wants them, of images (h, w, 3) of any shapes; those of one shape together."""
    batch = torch.empty(len(images), 3, clip.image_size, clip.image_size, device=clip.device)
    for shape in {image.shape for image in images}:
        at = [i for i, image in enumerate(images) if image.shape == shape]
        batch[at] = crop(clip.normalise(np.stack([images[i] for i in at])), where[at], clip.image_size)
    return batch


@dataclass(frozen=True)
class Prompts:
    """The prompts of a step as chunks of tokens, of like length together: a chunk costs what its longest
    does."""

    chunks: list[Tensor]
    places: Tensor  # of each prompt among the chunks' rows
    augmentations: int

    @classmethod
    def of(cls, tokens: Sequence[Tensor], ends: Encode, size: int) -> Prompts:
        """`tokens` of each augmentation, a row a class."""
        rows = torch.cat(list(tokens))
        order = torch.argsort(ends(rows), stable=True)
        return cls(list(torch.split(rows[order], size)), torch.argsort(order), len(tokens))

    def arranged(self, features: Tensor) -> Tensor:
        """(augmentations, classes, dim), from features in the order of the chunks."""
        return features[self.places].view(self.augmentations, -1, features.shape[-1])
