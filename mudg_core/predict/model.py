"""A classifier that was exported, and files to classes as fast as it goes, whatever their number.

Every thread reads, decodes and classifies batches of its own. So no core waits for another, neither for a
decoder nor at the end of each of the model's layers, and a GPU is fed by as many decoders as there are cores.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError

from mudg_core.corpus.decode import DEFAULT_LIMITS, Limits, Refused, decode
from mudg_core.encode.embed import ahead, chunks
from mudg_core.encode.models import Clip, Pixels, load_clip
from mudg_core.errors import ModelError
from mudg_core.index.exact import exact_cosines
from mudg_core.predict.files import read_image
from mudg_core.processes import usable_cpus
from mudg_core.train.export import CLASSES_FILE, load_classifier

Float32 = NDArray[np.float32]
FIX = "give a folder that `mudg model export` wrote"
MAX_THREADS = 8  # each holds a batch and what the model makes of it; more cores share in the model's layers
ENOUGH = 2  # times the model's image size: a JPEG's pixels beyond that are not worth decoding
NOT_FINITE = "model: no finite answer"


@dataclass(frozen=True)
class Model:
    """A CLIP model, and a text feature for each class."""

    clip: Clip
    classes: tuple[str, ...]
    texts: Float32
    temperature: float

    def cosines(self, features: Float32) -> Float32:
        """With averaged prompts: the mean of the cosines with each. They are exact before they are rounded,
        so the order of classes hangs on features alone."""
        return exact_cosines(features, self.texts).astype(np.float32)

    def probabilities(self, cosines: Float32) -> Float32:
        logits = self.temperature * cosines
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: Float32 = powers / powers.sum(axis=1, keepdims=True)
        return shares


def open_model(folder: Path, prompts: str = "single", device: str = "cpu") -> Model:
    """The classifier in a folder, with `single` or `averaged` prompts."""
    facts, texts = _facts(folder), _texts(folder, prompts)
    clip = load_clip(f"local-dir:{folder}", device)
    classes, temperature = tuple(facts["classes"]), facts["temperature"][prompts]
    if texts.shape != (len(classes), clip.dim) or not np.isfinite(texts).all():
        what = f"{len(classes)} classes of {clip.dim} numbers were expected, and there are {texts.shape}"
        raise ModelError(what=f"the text features do not fit: {what}", where=str(folder), fix=FIX)
    return Model(clip, classes, texts, float(temperature))


def _facts(folder: Path) -> Any:
    try:
        facts = json.loads((folder / CLASSES_FILE).read_text(encoding="utf-8"))
        assert facts["classes"] and facts["temperature"]
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        what = f"there is no {CLASSES_FILE} that says what is classified"
        raise ModelError(what=what, where=str(folder), fix=FIX) from error
    return facts


def _texts(folder: Path, prompts: str) -> Float32:
    try:
        texts: Float32 = load_classifier(folder)[prompts]
    except (OSError, KeyError, SafetensorError) as error:
        what = f"there are no text features of {prompts} prompts"
        raise ModelError(what=what, where=str(folder), fix=FIX) from error
    return texts


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
        for predictions in ahead(classify, chunks(files, size), threads):
            yield from predictions


def pixels_of(clip: Clip, path: Path, limits: Limits = DEFAULT_LIMITS) -> Pixels:
    """An image as the model takes it. Raises `Refused`."""
    return clip.pixels(decode(read_image(path, limits), limits, ENOUGH * clip.image_size))


def _classify(model: Model, batch: Sequence[Path], top: int, limits: Limits) -> list[Prediction]:
    pixels: dict[int, Pixels] = {}
    predictions = [Prediction(path) for path in batch]
    for place, path in enumerate(batch):
        try:
            pixels[place] = pixels_of(model.clip, path, limits)
        except Refused as refused:
            predictions[place] = Prediction(path, error=refused.reason)
    if pixels:
        features = model.clip.encode_images(np.stack(list(pixels.values())), len(pixels))
        for place, guesses in zip(pixels, best(model, features, top), strict=True):
            predictions[place] = Prediction(batch[place], guesses, "" if guesses else NOT_FINITE)
    return predictions


def best(model: Model, features: Float32, top: int) -> Iterator[tuple[Guess, ...]]:
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
