"""Loading CLIP models, and turning images and texts into unit vectors.

Importing this takes seconds (torch, open_clip). What only has to know which model is meant imports `weights`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from mudg_core.encode.check_model import check_folder
from mudg_core.encode.open_clip_support import (
    TEXT_ONLY,
    lean_import,
    load_hub,
    load_timm,
    tokenised,
    tower_builder,
)
from mudg_core.encode.weights import local_files, locate, weights_digest
from mudg_core.errors import ModelError
from mudg_core.settings import EncodeSettings

with warnings.catch_warnings(), lean_import():
    warnings.simplefilter("ignore", DeprecationWarning)
    import open_clip as open_clip  # for others too: it must not be imported before open_clip_support

for _module in (open_clip.model, open_clip.coca_model):
    _module._build_vision_tower = tower_builder(_module._build_vision_tower)

Float32 = NDArray[np.float32]
Pixels = NDArray[np.uint8]

HOW_TO_NAME = (
    "give local-dir:PATH, demo:index, demo:student, ARCHITECTURE/TAG as open_clip lists them, or "
    "ARCHITECTURE/FILE.safetensors"
)
LONGEST = 4  # times as long as it is high, or the other way round, before an image is made smaller
RESAMPLING = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "nearest": Image.Resampling.NEAREST,
}


@dataclass(frozen=True)
class Clip:
    """A CLIP model with what is needed to feed it."""

    name: str
    network: Any  # open_clip.CLIP: the library carries no types
    tokenizer: Any
    tokens: Callable[[Sequence[str]], torch.Tensor]  # ids of texts, still in the CPU's memory
    config: dict[str, Any]
    image_size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    device: torch.device
    resize_mode: str = "shortest"
    resampling: Image.Resampling = Image.Resampling.BICUBIC

    @property
    def dim(self) -> int:
        return int(self.config["model_cfg"]["embed_dim"])

    @property
    def batch_size(self) -> int:
        return EncodeSettings().batch(self.device.type)

    def pixels(self, image: Image.Image) -> Pixels:
        """An image as the model wants it, still bytes: the shortest side resized and the centre cropped, or
        (where the model was trained so) everything squashed into a square."""
        size = self.image_size
        if image.mode != "RGB":
            image = image.convert("RGB")
        if image.size == (size, size):
            return np.array(image)
        if self.resize_mode == "squash":
            return np.array(image.resize((size, size), self.resampling))
        wide, high = (size * side // min(image.size) for side in image.size)
        image = image.resize((wide, high), self.resampling)
        left, top = round((wide - size) / 2), round((high - size) / 2)  # as torchvision rounds
        return np.array(image.crop((left, top, left + size, top + size)))

    def whole(self, image: Image.Image) -> Pixels:
        """An image to cut crops from, still bytes: as `pixels`, but with nothing cut off. A long one is made
        smaller, so that none takes the room of more than LONGEST squares."""
        size, (wide, high) = self.image_size, image.size
        if self.resize_mode == "squash" or wide == high:
            return self.pixels(image)
        scale = min(size / min(wide, high), math.sqrt(LONGEST * size**2 / (wide * high)))
        shape = (max(1, round(wide * scale)), max(1, round(high * scale)))
        return np.array(image.convert("RGB").resize(shape, self.resampling))

    def normalise(self, pixels: Pixels | torch.Tensor) -> torch.Tensor:
        """Bytes (n, h, w, 3) as the float tensor (n, 3, h, w) that the vision tower was trained on. They
        are turned while they are bytes, and scaled and shifted in one go: four times as fast as by the
        letter."""
        sent = torch.as_tensor(pixels).to(self.device, non_blocking=True)
        mean, std = (torch.tensor(v, device=self.device).view(1, 3, 1, 1) for v in (self.mean, self.std))
        return sent.permute(0, 3, 1, 2).contiguous().float().mul_(1 / (255 * std)).sub_(mean / std)

    @torch.inference_mode()
    def encode_images(self, pixels: Pixels, batch_size: int | None = None) -> Float32:
        """Unit-norm image features, batch by batch."""
        size = batch_size or self.batch_size
        with self._precision():
            parts = [
                self.network.encode_image(self.normalise(pixels[i : i + size]), normalize=True)
                for i in range(0, len(pixels), size)
            ]
        return _stack(parts, self.dim)

    def encode_texts(self, texts: Sequence[str], batch_size: int | None = None) -> Float32:
        """Unit-norm text features, batch by batch."""
        return self.encode_tokens(self.tokens(texts), batch_size)

    @torch.inference_mode()
    def encode_tokens(self, tokens: torch.Tensor, batch_size: int | None = None) -> Float32:
        """The same of texts that are tokens already. Texts of like length go together: what comes after a
        text's end is cut off (see `_text_features`), and most captions fill a fraction of the context."""
        size, ends = batch_size or self.batch_size, tokens.argmax(dim=1)
        order = torch.argsort(ends, stable=True)
        with self._precision():
            parts = [
                self._text_features(tokens[order[i : i + size]].to(self.device))
                for i in range(0, len(tokens), size)
            ]
        features = _stack(parts, self.dim)
        unsorted = np.empty_like(features)
        unsorted[order.numpy()] = features
        return unsorted

    def _text_features(self, tokens: torch.Tensor) -> torch.Tensor:
        """In a causal tower no token sees a later one, so nothing after the last end token is computed."""
        net = self.network
        causal = isinstance(net, open_clip.CLIP) and net.attn_mask is not None
        if not (causal and net.text_pool_type == "argmax"):
            whole: torch.Tensor = net.encode_text(tokens, normalize=True)
            return whole
        length = int(tokens.argmax(dim=1).max()) + 1 if len(tokens) else 0
        cut = tokens[:, :length]
        x = net.token_embedding(cut) + net.positional_embedding[:length]
        x = net.transformer(x, attn_mask=net.attn_mask[:length, :length])
        x = net.ln_final(x[torch.arange(len(cut), device=cut.device), cut.argmax(dim=1)])
        if net.text_projection is not None:
            linear = isinstance(net.text_projection, torch.nn.Linear)
            x = net.text_projection(x) if linear else x @ net.text_projection
        return torch.nn.functional.normalize(x, dim=-1)

    def _precision(self) -> AbstractContextManager[Any]:
        """Mixed on a GPU; on a CPU half precision saves no time. Keys of stages name it (tasks/policy.py)."""
        return torch.autocast("cuda", dtype=torch.float16) if self.device.type == "cuda" else nullcontext()


def _stack(parts: list[torch.Tensor], dim: int) -> Float32:
    if not parts:
        return np.zeros((0, dim), dtype=np.float32)
    return torch.cat(parts).float().cpu().numpy()


def blank_clip(name: str) -> Clip:
    """A model of the same build; with random weights, where its own would have to be downloaded."""
    path, pretrained = locate(name)
    return load_clip(name) if pretrained is None else _load(name, path, None, "cpu")


def load_clip(name: str, device: str = "cpu") -> Clip:
    """The model called `name`, in evaluation mode, ready on `device`."""
    path, pretrained = locate(name)
    if pretrained is None:
        check_folder(name, local_files(name, path)[0].parent)
    elif pretrained.endswith(".safetensors"):
        weights_digest(name)  # tells of a missing file in our words
    return _load(name, path, pretrained, device)


def load_text_encoder(name: str) -> Clip:
    """The same without its vision tower, which a query in words does not need: half of a small model, and
    most of a large one."""
    token = TEXT_ONLY.set(True)
    try:
        return load_clip(name)
    finally:
        TEXT_ONLY.reset(token)


def _load(name: str, path: str, pretrained: str | None, device: str) -> Clip:
    try:
        load_timm(open_clip.get_model_config(path))
        if pretrained is not None and not pretrained.endswith(".safetensors"):
            load_hub()
        network = open_clip.create_model(path, pretrained=pretrained, device=device)
        tokenizer = open_clip.get_tokenizer(path)
    except Exception as error:  # open_clip raises whatever its loaders raise
        raise ModelError(
            what=f"the CLIP model cannot be loaded: {error}",
            where=name,
            fix=HOW_TO_NAME,
        ) from error
    preprocess = open_clip.get_model_preprocess_cfg(network)
    size = preprocess["size"]
    return Clip(
        name=name,
        network=network.eval(),
        tokenizer=tokenizer,
        tokens=tokenised(tokenizer),
        config={"model_cfg": open_clip.get_model_config(path), "preprocess_cfg": preprocess},
        image_size=int(size if isinstance(size, int) else size[0]),
        mean=tuple(preprocess["mean"]),
        std=tuple(preprocess["std"]),
        device=torch.device(device),
        **_resizing(preprocess, name),
    )


def _resizing(preprocess: dict[str, Any], name: str) -> dict[str, Any]:
    mode, kind = preprocess.get("resize_mode", "shortest"), preprocess.get("interpolation", "bicubic")
    if mode not in ("shortest", "squash") or kind not in RESAMPLING:
        what = f"images for this model are resized by {mode!r} and {kind!r}, which mudg cannot do"
        raise ModelError(what=what, where=name, fix="use a model with resize_mode shortest or squash")
    return {"resize_mode": mode, "resampling": RESAMPLING[kind]}


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
            fix=HOW_TO_NAME,
        ) from error
    return config
