"""Finetuning as a good engineer writes it in an afternoon, without our tricks: what ours is compared with.

The same loss, order, crops, parameter groups, updates and average. Gradients are taken only where something
is trained, the teacher builds no graph, and its texts are encoded once. But both towers are open_clip's own:
texts have their full length, each prompt is encoded by itself, and the teacher is a whole second network.
"""

from __future__ import annotations

import copy
import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mudg_core.encode.models import Clip, Pixels
from mudg_core.settings import TrainSettings
from mudg_core.train.batches import Order, crop, draw_crops
from mudg_core.train.finetune import Int64, Progress, optimiser_of
from mudg_core.train.loss import cosines, training_loss
from mudg_core.train.student import Student


def finetune_naively(
    clip: Clip,
    pixels: Pixels,
    labels: Int64,
    prompts: list[list[str]],
    settings: TrainSettings,
    seed: int,
    progress: Progress,
) -> dict[str, Tensor]:
    """Returns the averaged weights by name."""
    random = torch.Generator().manual_seed(seed)
    student = Student(clip, settings.blocks, settings.prompt_tokens)  # frozen weights require no gradient
    network, trained = student.network, student.trained_parameters()
    teacher = copy.deepcopy(network).requires_grad_(False)
    tokens = torch.cat([student.tokens(texts) for texts in prompts])
    with torch.no_grad():
        known = full_length(teacher, tokens, student.soft_prompt).view(len(prompts), -1, clip.dim)
    average = {name: parameter.detach().clone() for name, parameter in trained.items()}
    optimiser = optimiser_of(trained, settings)
    order, targets = Order(len(pixels), random), torch.tensor(labels)

    for step in range(settings.iterations):
        started, rows = time.monotonic(), order.take(settings.batch)
        places = draw_crops(len(rows), settings.min_crop, random)
        images = crop(clip.normalise(pixels[rows.numpy()]), places)
        features = network.encode_image(images, normalize=True)
        texts = full_length(network, tokens, student.soft_prompt).view_as(known)
        with torch.no_grad():
            scores = settings.teacher_temperature * cosines(
                teacher.encode_image(images, normalize=True), known
            )
        loss = training_loss(features, texts, targets[rows], scores.softmax(dim=-1), settings)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            for name, parameter in trained.items():
                average[name].lerp_(parameter, 1 - settings.ema)
        progress(step + 1, loss.item(), settings.batch / (time.monotonic() - started))
    return average


def full_length(network: Any, tokens: Tensor, soft: Tensor) -> Tensor:
    """Of all tokens of the context, as open_clip does it."""
    x = network.token_embedding(tokens)
    x = torch.cat([x[:, :1], soft.expand(len(x), -1, -1), x[:, 1 + len(soft) :]], dim=1)
    x = network.transformer(x + network.positional_embedding, attn_mask=network.attn_mask)
    x = network.ln_final(x)[torch.arange(len(tokens)), tokens.argmax(dim=1)]
    linear = isinstance(network.text_projection, nn.Linear)
    return F.normalize(network.text_projection(x) if linear else x @ network.text_projection, dim=-1)
