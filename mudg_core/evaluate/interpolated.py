"""What students between the initial and the finetuned weights say of some images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from mudg_core.encode.models import Clip, Pixels
from mudg_core.index.exact_products import exact_cosines
from mudg_core.train.export import open_student
from mudg_core.train.student import Student, initial_student, interpolate

Float32 = NDArray[np.float32]


def logits_between(
    clip: Clip,
    model: Path,
    prompts: Sequence[str],
    pixels: Pixels,
    alphas: Iterable[float],
    temperature: float,
    batch_size: int,
) -> dict[float, Float32]:
    """Logits (images, classes) by weight. 0 is always among them: `clip` as it is, without a soft prompt.
    Features are torch's, and may differ in a last bit from CPU to CPU; products of them are exact.

    One student after the other, so that three models are in memory at most; `clip` ends up inside one.
    """
    scale = np.float32(temperature)
    plain = exact_cosines(clip.encode_images(pixels, batch_size), clip.encode_texts(prompts))
    found = {0.0: scale * plain.astype(np.float32)}
    tuned = open_student(model, str(clip.device))
    initial = initial_student(clip, tuned.prompt)
    for alpha in alphas:
        found[alpha] = scale * _cosines(interpolate(initial, tuned, alpha), prompts, pixels, batch_size)
    return found


@torch.inference_mode()
def _cosines(student: Student, prompts: Sequence[str], pixels: Pixels, batch_size: int) -> Float32:
    texts: Float32 = student.text_features(student.tokens(prompts)).float().cpu().numpy()
    return exact_cosines(student.clip.encode_images(pixels, batch_size), texts).astype(np.float32)
