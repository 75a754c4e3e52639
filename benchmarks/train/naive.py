"""Finetuning as one writes it first: what ours is compared with.

The same loss, order, crops and updates. But gradients are taken through everything, frozen or not; texts have
their full length; and a whole second network is asked in every step for all images and all texts.
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
from mudg_core.train.crop import crop, draw_crops
from mudg_core.train.finetune import Int64, Progress
from mudg_core.train.loss import cosines, training_loss
from mudg_core.train.order import Order
from mudg_core.train.student import Student


def finetune_naively(
    clip: Clip,
    pixels: Pixels,
    labels: Int64,
    prompts: list[list[str]],
    settings: TrainSettings,
    seed: int,
    progress: Progress,
) -> None:
    random = torch.Generator().manual_seed(seed)
    student = Student(clip, settings.blocks, settings.prompt_tokens)
    trained = student.trained_parameters()
    network = student.network.requires_grad_(True)
    teacher, initial = copy.deepcopy(network), student.soft_prompt.detach().clone()
    tokens = torch.cat([student.tokens(texts) for texts in prompts])
    average = {name: parameter.detach().clone() for name, parameter in trained.items()}
    optimiser = torch.optim.SGD(trained.values(), settings.learning_rate, settings.momentum)
    order, targets = Order(len(pixels), random), torch.tensor(labels)

    for step in range(settings.iterations):
        started, rows = time.monotonic(), order.take(settings.batch_size)
        places = draw_crops(len(rows), settings.min_crop, random)
        images = crop(clip.normalise(pixels[rows.numpy()]), places)
        features = network.encode_image(images, normalize=True)
        texts = full_length(network, tokens, student.soft_prompt).view(len(prompts), -1, clip.dim)
        with torch.no_grad():
            known = full_length(teacher, tokens, initial).view_as(texts)
            scores = settings.teacher_temperature * cosines(
                teacher.encode_image(images, normalize=True), known
            )
        loss = training_loss(features, texts, targets[rows], scores.softmax(dim=-1), settings)
        network.zero_grad(set_to_none=True)
        student.soft_prompt.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            for name, parameter in trained.items():
                average[name].lerp_(parameter, 1 - settings.ema)
        progress(step + 1, loss.item(), settings.batch_size / (time.monotonic() - started))


def full_length(network: Any, tokens: Tensor, soft: Tensor) -> Tensor:
    """Of all tokens of the context, as open_clip does it."""
    x = network.token_embedding(tokens)
    x = torch.cat([x[:, :1], soft.expand(len(x), -1, -1), x[:, 1 + len(soft) :]], dim=1)
    x = network.transformer(x + network.positional_embedding, attn_mask=network.attn_mask)
    x = network.ln_final(x)[torch.arange(len(tokens)), tokens.argmax(dim=1)]
    linear = isinstance(network.text_projection, nn.Linear)
    return F.normalize(network.text_projection(x) if linear else x @ network.text_projection, dim=-1)
