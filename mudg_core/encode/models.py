"""Loading CLIP models, and turning images and texts into unit vectors.

Importing this takes seconds (torch, open_clip). What only has to know which model is meant imports `weights`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import mudg_core.encode.torchvision_ops  # noqa: F401  (before open_clip is imported)
from mudg_core.encode.weights import local_files, locate
from mudg_core.errors import ModelError

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import open_clip as open_clip  # for others too: it must not be imported before torchvision_ops

Float32 = NDArray[np.float32]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Clip:
    """A CLIP model with what is needed to feed it."""

    name: str
    network: Any  # open_clip.CLIP: the library carries no types
    tokenizer: Any
    config: dict[str, Any]
    image_size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    device: torch.device

    @property
    def dim(self) -> int:
        return int(self.config["model_cfg"]["embed_dim"])

    def pixels(self, image: Image.Image) -> Pixels:
        """An image as the model wants it: shortest side resized, centre cropped, still bytes."""
        image, size = image.convert("RGB"), self.image_size
        if image.size != (size, size):
            wide, high = (size * side // min(image.size) for side in image.size)
            image = image.resize((wide, high), Image.Resampling.BICUBIC)
            left, top = round((wide - size) / 2), round((high - size) / 2)  # as torchvision rounds
            image = image.crop((left, top, left + size, top + size))
        return np.array(image)

    def normalise(self, pixels: Pixels | torch.Tensor) -> torch.Tensor:
        """Bytes (n, h, w, 3) as the float tensor (n, 3, h, w) that the vision tower was trained on."""
        batch = torch.as_tensor(pixels).to(self.device).permute(0, 3, 1, 2).float().div_(255)
        mean, std = (torch.tensor(v, device=self.device).view(1, 3, 1, 1) for v in (self.mean, self.std))
        return batch.sub_(mean).div_(std)

    @torch.inference_mode()
    def encode_images(self, pixels: Pixels, batch_size: int = 256) -> Float32:
        """Unit-norm image features, batch by batch."""
        parts = [
            self.network.encode_image(self.normalise(pixels[i : i + batch_size]), normalize=True)
            for i in range(0, len(pixels), batch_size)
        ]
        return _stack(parts, self.dim)

    @torch.inference_mode()
    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> Float32:
        """Unit-norm text features, batch by batch."""
        parts = [
            self.network.encode_text(self.tokens(texts[i : i + batch_size]), normalize=True)
            for i in range(0, len(texts), batch_size)
        ]
        return _stack(parts, self.dim)

    def tokens(self, texts: Iterable[str]) -> torch.Tensor:
        tokens: torch.Tensor = self.tokenizer(list(texts))
        return tokens.to(self.device)


def _stack(parts: list[torch.Tensor], dim: int) -> Float32:
    if not parts:
        return np.zeros((0, dim), dtype=np.float32)
    return torch.cat(parts).float().cpu().numpy()


def load_clip(name: str, device: str = "cpu") -> Clip:
    """The model called `name`, in evaluation mode, ready on `device`."""
    path, pretrained = locate(name)
    if pretrained is None:
        local_files(name, path)
    try:
        network = open_clip.create_model(path, pretrained=pretrained, device=device)
        tokenizer = open_clip.get_tokenizer(path)
    except Exception as error:  # open_clip raises whatever its loaders raise
        raise ModelError(
            what=f"the CLIP model cannot be loaded: {error}",
            where=name,
            fix="give local-dir:PATH, demo:index, demo:student or ARCHITECTURE/TAG as open_clip lists them",
        ) from error
    preprocess = open_clip.get_model_preprocess_cfg(network)
    size = preprocess["size"]
    return Clip(
        name=name,
        network=network.eval(),
        tokenizer=tokenizer,
        config={"model_cfg": open_clip.get_model_config(path), "preprocess_cfg": preprocess},
        image_size=int(size if isinstance(size, int) else size[0]),
        mean=tuple(preprocess["mean"]),
        std=tuple(preprocess["std"]),
        device=torch.device(device),
    )


def model_config(name: str) -> dict[str, Any]:
    """How a model is built, without its weights: nothing is downloaded."""
    path, _ = locate(name)
    try:
        config = open_clip.get_model_config(path)
        if not isinstance(config, dict):
            raise ValueError("open_clip does not know this architecture")
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(
            what=f"the model's configuration cannot be read: {error}",
            where=name,
            fix="give local-dir:PATH, demo:index, demo:student or ARCHITECTURE/TAG as open_clip lists them",
        ) from error
    return config
