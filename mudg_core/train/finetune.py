"""Finetuning the student on a retrieved dataset (Algorithm 2, step 4). Reads top to bottom."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from mudg_core.encode.models import Clip, Pixels
from mudg_core.errors import TrainingError
from mudg_core.settings import TrainSettings
from mudg_core.train.loss import diversity_loss
from mudg_core.train.student import Student

Int64 = NDArray[np.int64]
Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class Finetuned:
    """The student with its averaged weights, and how it got there."""

    student: Student
    losses: list[float]
    initial_share: float  # of the initial weights in the average: beta ** N


def finetune(
    clip: Clip,
    pixels: Pixels,
    labels: Int64,
    prompts: list[list[str]],
    settings: TrainSettings,
    seed: int,
    progress: Progress | None = None,
) -> Finetuned:
    """`clip` trained on `pixels` with `labels`; `prompts[j][i]` says class i with augmentation j."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    prompts = prompts[: settings.augmentation_limit]
    student = Student(clip, settings.blocks, settings.prompt_tokens)
    teacher = copy.deepcopy(student).requires_grad_(False)
    tokens = [student.tokens(texts) for texts in prompts]
    teacher_texts = torch.stack([teacher.text_features(ids) for ids in tokens])
    parameters = student.trained_parameters()
    average = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    optimiser = _optimiser(student, settings)
    targets, losses = torch.tensor(labels, device=clip.device), []
    batches = _batches(len(pixels), settings.batch_size, random)

    for step in range(settings.iterations):
        rows = next(batches)
        images = student.clip.normalise(torch.from_numpy(pixels[rows.numpy()]))
        images = random_crop(images, settings.min_crop, random)
        used = [step % len(tokens)] if settings.augmentations == "in-turn" else list(range(len(tokens)))

        features = student.image_features(images)
        texts = student.text_features(torch.cat([tokens[j] for j in used]))
        logits = settings.temperature * _scores(features, texts.view(len(used), -1, texts.shape[-1]))
        with torch.no_grad():
            initial = settings.teacher_temperature * _scores(
                teacher.image_features(images), teacher_texts[used]
            )
        loss = diversity_loss(logits, targets[rows], initial.softmax(dim=-1), settings.diversity)

        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise TrainingError(
                what=f"the loss became {losses[-1]} at step {step + 1}", fix="lower train.learning_rate"
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            for name, parameter in parameters.items():
                average[name].lerp_(parameter, 1 - settings.ema)
        if progress is not None:
            progress(step + 1, losses[-1])

    with torch.no_grad():
        for name, parameter in parameters.items():
            if not average[name].isfinite().all():  # the loss was finite, but its last update was not
                raise TrainingError(
                    what=f"{name} is not finite after step {settings.iterations}",
                    fix="lower train.learning_rate",
                )
            parameter.copy_(average[name])
    return Finetuned(student.eval(), losses, settings.ema**settings.iterations)


def random_crop(images: Tensor, smallest: float, random: torch.Generator) -> Tensor:
    """A random resized crop and flip of each image, all in one sampling of the batch."""
    n = len(images)
    area = smallest + (1 - smallest) * torch.rand(n, generator=random)
    widest = (-area.log()).clamp(max=math.log(4 / 3))  # no side longer than the image, or area would shrink
    ratio = torch.exp((torch.rand(n, generator=random) * 2 - 1) * widest)
    wide, high = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    right, down = ((torch.rand(n, generator=random) * 2 - 1) * (1 - side) for side in (wide, high))
    flip = (torch.rand(n, generator=random) < 0.5).float() * 2 - 1
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 0, 2], theta[:, 1, 1], theta[:, 1, 2] = wide * flip, right, high, down
    grid = F.affine_grid(theta.to(images.device), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def _scores(images: Tensor, texts: Tensor) -> Tensor:
    """Cosines (batch, augmentations, classes)."""
    return torch.einsum("bd,jcd->bjc", images, texts)


def _batches(rows: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
    """Endless batches of row numbers, each epoch in a new order; a small dataset fills a batch repeatedly."""
    pool = torch.empty(0, dtype=torch.long)
    while True:
        while len(pool) < size:
            pool = torch.cat([pool, torch.randperm(rows, generator=random)])
        yield pool[:size]
        pool = pool[size:]


def _optimiser(student: Student, settings: TrainSettings) -> torch.optim.Optimizer:
    rest = [p for name, p in student.trained_parameters().items() if name != "soft_prompt"]
    rate = settings.learning_rate
    groups = [
        {"params": [student.soft_prompt], "lr": rate * settings.prompt_rate_factor},
        {"params": rest, "lr": rate},
    ]
    return torch.optim.SGD(groups, lr=rate, momentum=settings.momentum, weight_decay=settings.weight_decay)
