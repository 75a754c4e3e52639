"""A classifier that was exported, opened and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from mudg_core.encode.models import Clip, load_clip
from mudg_core.errors import ModelError
from mudg_core.index.exact_products import exact_cosines
from mudg_core.train.export import CLASSES_FILE, load_classifier

Float32 = NDArray[np.float32]
FIX = "give a folder that `mudg model export` wrote"


@dataclass(frozen=True)
class Model:
    """A CLIP model, and one way to say its classes: a text feature for each."""

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
