"""Files to classes, as fast as the model goes, whatever their number.

Every thread reads, decodes and classifies batches of its own. So no core waits for another, neither for a
decoder nor at the end of each of the model's layers, and a GPU is fed by as many decoders as there are cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from mudg_core.corpus.decode import DEFAULT_LIMITS, Limits, Refused, decode
from mudg_core.encode.embed import ahead, chunks
from mudg_core.encode.models import Clip, Pixels
from mudg_core.predict.files import read_image
from mudg_core.predict.model import Model
from mudg_core.processes import usable_cpus

MAX_THREADS = 8  # each holds a batch and what the model makes of it; more cores share in the model's layers
ENOUGH = 2  # times the model's image size: a JPEG's pixels beyond that are not worth decoding
NOT_FINITE = "model: no finite answer"


@dataclass(frozen=True)
class Guess:
    """One class for an image."""

    label: int
    probability: float
    cosine: float


@dataclass(frozen=True)
class Prediction:
    """The likeliest classes of an image, best first; or why there are none."""

    file: Path
    guesses: tuple[Guess, ...] = ()
    error: str = ""


def predict(
    model: Model,
    files: Iterable[Path],
    *,
    top: int = 1,
    batch_size: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    threads: int | None = None,
) -> Iterator[Prediction]:
    """One prediction a file, in order. An image that cannot be read costs that image.

    Answers depend on an image alone, up to rounding: neither its batch nor the number of threads matter.
    """
    cores = usable_cpus()
    threads = threads or min(cores, MAX_THREADS)
    size = batch_size or model.clip.batch_size

    def classify(batch: Sequence[Path]) -> list[Prediction]:
        return _classify(model, batch, min(top, len(model.classes)), limits)

    with model_threads(max(1, cores // threads)):
        for answers in ahead(classify, chunks(files, size), threads):
            yield from answers


def pixels_of(clip: Clip, path: Path, limits: Limits = DEFAULT_LIMITS) -> Pixels:
    """An image as the model takes it. Raises `Refused`."""
    return clip.pixels(decode(read_image(path, limits), limits, ENOUGH * clip.image_size))


def _classify(model: Model, batch: Sequence[Path], top: int, limits: Limits) -> list[Prediction]:
    found: dict[int, Pixels] = {}
    answers = [Prediction(path) for path in batch]
    for place, path in enumerate(batch):
        try:
            found[place] = pixels_of(model.clip, path, limits)
        except Refused as refused:
            answers[place] = Prediction(path, error=refused.reason)
    if found:
        features = model.clip.encode_images(np.stack(list(found.values())), len(found))
        for place, guesses in zip(found, best(model, features, top), strict=True):
            answers[place] = Prediction(batch[place], guesses, "" if guesses else NOT_FINITE)
    return answers


def best(model: Model, features: NDArray[np.float32], top: int) -> Iterator[tuple[Guess, ...]]:
    """The likeliest classes of each image; of equals the first. None where the model broke down."""
    cosines = model.cosines(features)
    shares = model.probabilities(cosines)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :top]
    for line, cosine, share in zip(order.tolist(), cosines, shares, strict=True):
        sound = bool(np.isfinite(share).all())
        yield tuple(Guess(n, float(share[n]), float(cosine[n])) for n in line) if sound else ()


@contextmanager
def model_threads(threads: int) -> Iterator[None]:
    """How many threads each of the model's layers may use."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
