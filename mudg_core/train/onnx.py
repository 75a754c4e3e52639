"""Both towers of a model as ONNX graphs, for runtimes without torch.

    visual.onnx   pixels (batch, 3, side, side), normalised as open_clip_config.json says -> features
    text.onnx     tokens (batch, context) of CLIP's tokenizer -> features

Features have unit length, and any batch size will do. The text tower is the plain one: what the soft prompt
learnt is in `classifier.safetensors`, whose rows are all that classifying takes. A graph is run beside torch
before it is written to its place: one that answers otherwise never gets there.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mudg_core.encode.models import Clip
from mudg_core.errors import InputError, ModelError

VISUAL_FILE, TEXT_FILE = "visual.onnx", "text.onnx"
TOLERANCE = 1e-3
NEEDED = ("onnx", "onnxscript", "onnxruntime")
LARGEST = 1_800_000_000  # bytes of weights inside a graph, which may have 2 GiB in all; else beside it
BATCHES = (1, 3)  # that a graph is tried with: one that has learnt its batch size by heart fails at one
TEXTS = ("a photo of a cat.", "", "a sketch of two red boats, which have white sails, on a lake at night")


@dataclass(frozen=True)
class Written:
    """A graph, and how far its features were from torch's at most."""

    file: Path
    difference: float


class Tower(nn.Module):
    """One tower with an input that has a name."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network


class VisualTower(Tower):
    def forward(self, pixels: Tensor) -> Tensor:
        features: Tensor = self.network.encode_image(pixels, normalize=True)
        return features


class TextTower(Tower):
    def forward(self, tokens: Tensor) -> Tensor:
        features: Tensor = self.network.encode_text(tokens, normalize=True)
        return features


def export_onnx(clip: Clip, out: Path) -> list[Written]:
    """Writes both graphs into `out`, each checked against torch within TOLERANCE."""
    check_installed()
    random = torch.Generator().manual_seed(0)
    side = clip.image_size
    pixels = torch.randn(len(TEXTS), 3, side, side, generator=random)
    towers = [
        (VISUAL_FILE, VisualTower(clip.network), "pixels", pixels),
        (TEXT_FILE, TextTower(clip.network), "tokens", clip.tokens(TEXTS)),
    ]
    return [_write(out / name, tower.eval(), word, inputs) for name, tower, word, inputs in towers]


def check_installed() -> None:
    """Tells of what is missing before anything is loaded or computed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            what=f"ONNX graphs need {', '.join(missing)}, which is not installed",
            fix="in mudg's checkout: pip install -e '.[cpu,onnx]' (or gpu for cpu)",
        )


def _write(file: Path, tower: Tower, word: str, inputs: Tensor) -> Written:
    """Beside its place first, so that nobody ever finds a graph that was not checked."""
    with TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as unfinished:
        graph = Path(unfinished, file.name)
        with torch.inference_mode(False), torch.no_grad(), _silent():
            _trace(graph, tower, word, inputs[:2])
        difference = compare(graph, tower, word, inputs)
        if not difference <= TOLERANCE:
            raise ModelError(
                what=f"{file.name} differs from torch by {difference:.2g}, and {TOLERANCE:g} is allowed",
                where=str(file.parent),
                fix="this is a fault of the exporter: use the weights with torch, and tell us which model",
            )
        for part in sorted(Path(unfinished).iterdir()):
            part.replace(file.with_name(part.name))
    return Written(file, difference)


def _trace(file: Path, tower: Tower, word: str, inputs: Tensor) -> None:
    weights = sum(tensor.numel() * tensor.element_size() for tensor in tower.state_dict().values())
    torch.onnx.export(
        tower,
        (inputs,),
        file,
        dynamo=True,
        verbose=False,
        external_data=weights > LARGEST,
        input_names=[word],
        output_names=["features"],
        dynamic_shapes={word: {0: torch.export.Dim("batch")}},
    )


@torch.inference_mode()
def compare(file: Path, tower: Tower, word: str, inputs: Tensor) -> float:
    """The largest difference of any number in the features of batches of several sizes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    differences = []
    for size in BATCHES:
        (features,) = session.run(None, {word: inputs[:size].numpy()})
        wanted = tower(inputs[:size]).numpy()
        same = features.shape == wanted.shape
        differences.append(np.abs(features - wanted).max() if same else np.inf)
    return float(np.max(differences))  # what is not a number stays so, and is no good


@contextmanager
def _silent() -> Iterator[None]:
    """The exporter warns of what torch's own code has to change, and logs what it is at."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
