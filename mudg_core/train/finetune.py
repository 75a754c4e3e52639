"""Finetuning the student on a retrieved dataset (Algorithm 2, step 4). `finetune` reads top to bottom."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from mudg_core.encode.models import Clip, Pixels
from mudg_core.encode.weights import width_in
from mudg_core.settings import TrainSettings
from mudg_core.storage import Checkpoints
from mudg_core.train.batches import Encode, Order, Prompts, crops, draw_crops
from mudg_core.train.checkpoint import Checkpointer, TrainState
from mudg_core.train.loss import cosines, needs_teacher, teacher_temperature, training_loss
from mudg_core.train.student import Student

Int64 = NDArray[np.int64]
Progress = Callable[[int, float, float | None], None]  # step, loss, images a second; none of earlier runs
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
EVENTS = "events.out.tfevents.train"  # TensorBoard looks for `tfevents` in a name
LINE_SECONDS = 10.0


@dataclass(frozen=True)
class Finetuned:
    """The student with its averaged weights, and how it got there."""

    student: Student
    losses: list[float]
    initial_share: float  # of the initial weights in the moving average: beta ** N


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
    prompt_sets = [Prompts.of(turn, student.ends, settings.text_chunk) for turn in turns]
    targets = torch.tensor(labels, device=clip.device)
    aspects = torch.tensor([image.shape[1] / image.shape[0] for image in images])

    # The teacher: the student's own trained blocks with the weights that they have now.
    has_teacher = needs_teacher(settings)
    initial = {name: parameter.detach().clone() for name, parameter in student.vision_parameters().items()}
    teacher_of = precision.of(lambda hidden: functional_call(student, initial, (hidden,)))
    teacher_texts = [p.arranged(encoded(texts_of, p.chunks)) for p in prompt_sets] if has_teacher else []

    # What steps change.
    parameters = student.trained_parameters()
    optimiser = optimiser_of(parameters, settings)
    state = TrainState(parameters, optimiser, precision.scaler, random, Order(len(images), random))
    checkpointer = Checkpointer(checkpoints, settings)
    checkpointer.resume(state)
    for step, earlier_loss in enumerate(state.losses):
        progress(step + 1, earlier_loss, None)

    for step in range(state.step, settings.iterations):
        started, turn = time.monotonic(), step % len(prompt_sets)

        # Frozen blocks: once per crop and without a graph, for student and teacher alike.
        rows = state.order.take(settings.batch)
        places = draw_crops(settings.batch, settings.min_crop, random, aspects[rows])
        chunks = zip(*(torch.split(both, settings.image_chunk) for both in (rows, places)), strict=True)
        hidden = [frozen(crops(clip, [images[i] for i in part], where)) for part, where in chunks]

        # Trained blocks: features first, then the loss, then their gradient chunk by chunk.
        image_side = Encoded(images_of, hidden)
        text_side = Encoded(texts_of, prompt_sets[turn].chunks)
        teacher = None
        if has_teacher:
            teacher_cosines = cosines(encoded(teacher_of, hidden), teacher_texts[turn])
            teacher = (teacher_temperature(settings) * teacher_cosines).softmax(dim=-1)
        texts = prompt_sets[turn].arranged(text_side.features)
        loss = training_loss(image_side.features, texts, targets[rows], teacher, settings)
        value = loss.item()
        checkpointer.check_loss(value, state)
        optimiser.zero_grad(set_to_none=True)
        precision.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        image_side.backward()
        text_side.backward()

        precision.scaler.step(optimiser)
        precision.scaler.update()
        state.update_ema(settings.ema)
        state.losses.append(value)
        progress(state.step, value, settings.batch / (time.monotonic() - started))
        checkpointer.after_step(state, interrupted())

    state.check()
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(state.ema[name])
    return Finetuned(student, state.losses, settings.ema**settings.iterations)


def optimiser_of(parameters: dict[str, torch.nn.Parameter], settings: TrainSettings) -> torch.optim.Optimizer:
    prompt, *rest = parameters.values()  # the soft prompt comes first
    rate = settings.rate
    groups = [
        {"params": [prompt], "lr": rate * settings.prompt_rate_factor},
        {"params": rest, "lr": rate},
    ]
    return torch.optim.SGD(groups, lr=rate, momentum=settings.momentum, weight_decay=settings.weight_decay)


class Encoded:
    """Features of more images or prompts than fit in memory at once, with their gradient (gradient caching).

    A single chunk keeps its graph. Of several only the features stay; once their gradient is known, each
    chunk is encoded again for its own. So memory holds one chunk's graph, however many there are.
    """

    def __init__(self, encode: Encode, chunks: Sequence[Tensor]) -> None:
        self._encode, self._chunks = encode, chunks
        self._graph = encode(chunks[0]) if len(chunks) == 1 else None
        features = self._graph if self._graph is not None else encoded(encode, chunks)
        self.features = features.detach().requires_grad_()

    def backward(self) -> None:
        """From the features' gradient to that of the weights, where it is added to what is there."""
        assert self.features.grad is not None
        if self._graph is not None:
            self._graph.backward(self.features.grad)  # type: ignore[no-untyped-call]
            return
        parts = torch.split(self.features.grad, [len(chunk) for chunk in self._chunks])
        for chunk, gradient in zip(self._chunks, parts, strict=True):
            self._encode(chunk).backward(gradient)  # type: ignore[no-untyped-call]


@torch.no_grad()
def encoded(encode: Encode, chunks: Sequence[Tensor]) -> Tensor:
    """Features without a graph."""
    return torch.cat([encode(chunk) for chunk in chunks])


class Precision:
    """Half precision in the towers; weights, features and loss are float32. `name` is fp32, bf16 or fp16."""

    def __init__(self, name: str, device: torch.device) -> None:
        self.name, self.device = name, device
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.name == "fp16")

    def of(self, encode: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """The same function with its insides in this precision; what it returns is always float32."""

        def run(*inputs: Tensor) -> Tensor:
            half = HALF.get(self.name)
            with torch.autocast(self.device.type, dtype=half, enabled=half is not None):
                return encode(*inputs).float()

        return run


class TrainingLog:
    """Log lines while training runs (the first after the first step), and scalars for TensorBoard.

    Event files hold wall times, so they are `volatile` files of an artifact. Their name leaves out the
    machine's, which is private.
    """

    def __init__(
        self,
        folder: Path,
        steps: int,
        log: Any = None,
        clock: Callable[[], float] = time.monotonic,
        progress: Callable[[float], None] = lambda share: None,
    ) -> None:
        self.folder, self.steps, self.clock, self.progress = folder, steps, clock, progress
        self.log = log or logging.getLogger(__name__)
        self.logged = -LINE_SECONDS + clock()

    @property
    def file(self) -> Path:
        return self.folder / EVENTS

    def __enter__(self) -> TrainingLog:
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(self.folder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()
        (written,) = self.folder.iterdir()
        written.rename(self.file)

    def __call__(self, step: int, loss: float, rate: float | None) -> None:
        """`rate`: images a second; none for a step of an earlier run, which is reported again."""
        self.progress(step / self.steps)
        self.writer.add_scalar("loss", loss, step)
        if rate is None:
            return
        self.writer.add_scalar("images_per_second", rate, step)
        if step == self.steps or self.clock() - self.logged >= LINE_SECONDS:
            self.logged = self.clock()
            self.log.info("step %d of %d: loss %.4f, %.1f images/s", step, self.steps, loss, rate)
