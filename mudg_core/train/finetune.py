"""Finetuning the student on a retrieved dataset (Algorithm 2, step 4). Reads top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.func import functional_call

from mudg_core.encode.models import Clip, Pixels
from mudg_core.encode.weights import width_in
from mudg_core.settings import TrainSettings
from mudg_core.storage import Checkpoints
from mudg_core.train.checkpoint import Keeper, State
from mudg_core.train.chunks import Encoded, Prompts, encoded
from mudg_core.train.crop import crops, draw_crops
from mudg_core.train.loss import cosines, needs_teacher, teacher_temperature, training_loss
from mudg_core.train.order import Order
from mudg_core.train.precision import Precision
from mudg_core.train.student import Student

Int64 = NDArray[np.int64]
Progress = Callable[[int, float, float | None], None]  # step, loss, images a second; none of earlier runs


@dataclass(frozen=True)
class Finetuned:
    """The student with its averaged weights, and how it got there."""

    student: Student
    losses: list[float]
    initial_share: float  # of the initial weights in the average: beta ** N


def finetune(
    clip: Clip,
    images: Sequence[Pixels] | Pixels,
    labels: Int64,
    prompts: list[list[str]],
    settings: TrainSettings,
    seed: int,
    progress: Progress = lambda *_: None,
    checkpoints: Checkpoints | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Finetuned:
    """`clip` trained on `images` (h, w, 3) with `labels`; `prompts[j][i]` says class i with augmentation j.

    With `checkpoints` a run that was stopped goes on where it was, to the same bits. `interrupted` is asked
    after every step whether to stop.
    """
    settings = settings.for_student(width_in(clip.config))

    # The student, and the prompts of each step in turn: all of them, or one augmentation.
    random = torch.Generator().manual_seed(seed)
    student = Student(clip, settings.blocks, settings.prompt_tokens, settings.vision_from)
    precision = Precision(settings.precision_on(clip.device.type), clip.device)
    frozen, images_of = precision.of(student.hidden), precision.of(student)
    texts_of = precision.of(student.text_features)
    tokens = [student.tokens(texts) for texts in prompts[: settings.augmentation_limit]]
    turns = [[each] for each in tokens] if settings.augmentations == "in-turn" else [tokens]
    asked = [Prompts.of(turn, student.ends, settings.text_chunk) for turn in turns]
    targets = torch.tensor(labels, device=clip.device)
    aspects = torch.tensor([image.shape[1] / image.shape[0] for image in images])

    # The teacher: the student's own trained blocks with the weights that they have now.
    taught = needs_teacher(settings)
    initial = {name: parameter.detach().clone() for name, parameter in student.vision_parameters().items()}
    teacher_of = precision.of(lambda hidden: functional_call(student, initial, (hidden,)))
    teacher_texts = [said.arranged(encoded(texts_of, said.chunks)) for said in asked] if taught else []

    # What steps change.
    parameters = student.trained_parameters()
    optimiser = optimiser_of(parameters, settings)
    state = State(parameters, optimiser, precision.scaler, random, Order(len(images), random))
    keeper = Keeper(checkpoints, settings)
    keeper.resume(state)
    for step, loss_then in enumerate(state.losses):
        progress(step + 1, loss_then, None)

    for step in range(state.step, settings.iterations):
        started, turn = time.monotonic(), step % len(asked)

        # Frozen blocks: once per crop and without a graph, for student and teacher alike.
        rows = state.order.take(settings.batch)
        places = draw_crops(settings.batch, settings.min_crop, random, aspects[rows])
        chunks = zip(*(torch.split(both, settings.image_chunk) for both in (rows, places)), strict=True)
        hidden = [frozen(crops(clip, [images[i] for i in part], where)) for part, where in chunks]

        # Trained blocks: features first, then the loss, then their gradient chunk by chunk.
        shown, texts = Encoded(images_of, hidden), Encoded(texts_of, asked[turn].chunks)
        teacher = None
        if taught:
            known = cosines(encoded(teacher_of, hidden), teacher_texts[turn])
            teacher = (teacher_temperature(settings) * known).softmax(dim=-1)
        said = asked[turn].arranged(texts.features)
        loss = training_loss(shown.features, said, targets[rows], teacher, settings)
        value = loss.item()
        keeper.check_loss(value, state)
        optimiser.zero_grad(set_to_none=True)
        precision.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        shown.backward()
        texts.backward()

        precision.scaler.step(optimiser)
        precision.scaler.update()
        with torch.no_grad():
            for name, parameter in parameters.items():
                state.average[name].lerp_(parameter, 1 - settings.ema)
        state.losses.append(value)
        progress(state.step, value, settings.batch / (time.monotonic() - started))
        keeper.after_step(state, interrupted())

    state.check()
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(state.average[name])
    return Finetuned(student, state.losses, settings.ema**settings.iterations)


def optimiser_of(parameters: dict[str, torch.nn.Parameter], settings: TrainSettings) -> torch.optim.Optimizer:
    prompt, *rest = parameters.values()  # the soft prompt comes first
    rate = settings.rate
    groups = [
        {"params": [prompt], "lr": rate * settings.prompt_rate_factor},
        {"params": rest, "lr": rate},
    ]
    return torch.optim.SGD(groups, lr=rate, momentum=settings.momentum, weight_decay=settings.weight_decay)
