"""What the two towers of a CLIP model compute, from its configuration alone.

A multiply-add is two FLOP. Matrix products are counted exactly, layer by layer; norms, activations and the
softmax are not. Attention is counted in full, also under a causal mask: that is what open_clip computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mudg_core.errors import ModelError

# Floats that a block keeps for each token and channel when it is trained: two norms, query, key, value,
# attention and its projection, four of the hidden layer before and after its activation, two residual sums.
KEPT_BY_A_BLOCK = 16


@dataclass(frozen=True)
class Tower:
    """A transformer: `layers` equal blocks, and what comes before and after them."""

    tokens: int
    width: int
    layers: int
    hidden: int
    end_flop: int
    end_parameters: int

    @property
    def block_flop(self) -> int:
        products = 4 * self.width**2 + 2 * self.width * self.hidden  # q, k, v, out; two of the MLP
        return 2 * self.tokens * products + 4 * self.tokens**2 * self.width  # scores and their sum of values

    @property
    def flop(self) -> int:
        """One image or text, forward."""
        return self.layers * self.block_flop + self.end_flop

    @property
    def parameters(self) -> int:
        block = 4 * self.width**2 + 2 * self.width * self.hidden + 9 * self.width + self.hidden
        return self.layers * block + self.end_parameters

    @property
    def block_bytes(self) -> int:
        """float32 activations of one block for one image or text."""
        return 4 * KEPT_BY_A_BLOCK * self.tokens * self.width


@dataclass(frozen=True)
class Towers:
    """Both towers of a model, which meet in `dim` dimensions."""

    dim: int
    image_size: int
    image: Tower
    text: Tower

    @property
    def parameters(self) -> int:
        return self.image.parameters + self.text.parameters


def towers(config: Mapping[str, Any], name: str = "") -> Towers:
    """The towers that open_clip builds for a `model_cfg`: a ViT and a text transformer of its own."""
    try:
        dim, vision, text = int(config["embed_dim"]), dict(config["vision_cfg"]), dict(config["text_cfg"])
        _refuse_foreign(vision, text, name)
        size = min(_pair(vision.get("image_size", 224)))
        return Towers(dim, size, _image(vision, dim), _text(text, dim))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ModelError(
            what=f"not a configuration of open_clip: {type(error).__name__} {error}",
            where=name,
            fix="give a folder written by open_clip",
        ) from error


def _refuse_foreign(vision: Mapping[str, Any], text: Mapping[str, Any], name: str) -> None:
    """Towers of timm and Hugging Face are told from their name only, and a ResNet has other layers."""
    foreign = vision.get("timm_model_name") or text.get("hf_model_name")
    if foreign or not isinstance(vision.get("layers", 12), int):
        raise ModelError(
            what=f"no formula for {foreign or 'a convolutional vision tower'}",
            where=name,
            fix="plan with a ViT of open_clip of about that size, such as ViT-B-16/openai",
        )


def _image(cfg: Mapping[str, Any], dim: int) -> Tower:
    (high, wide), (patch_high, patch_wide) = (
        _pair(cfg.get("image_size", 224)),
        _pair(cfg.get("patch_size", 16)),
    )
    width = int(cfg.get("width", 768))
    patches = (high // patch_high) * (wide // patch_wide)
    tokens = patches + 1  # the class token
    patch_weights = 3 * patch_high * patch_wide * width
    pooled, pool_flop, pool_parameters = width, 0, 0
    if cfg.get("attentional_pool"):
        pooled, pool_flop, pool_parameters = dim, *_attention_pool(cfg, tokens, width, dim)
    return Tower(
        tokens,
        width,
        int(cfg.get("layers", 12)),
        int(width * cfg.get("mlp_ratio", 4.0)),
        end_flop=2 * patch_weights * patches + pool_flop + 2 * pooled * dim,
        end_parameters=patch_weights + (1 + tokens + 2) * width + pool_parameters + (2 + dim) * pooled,
    )


def _text(cfg: Mapping[str, Any], dim: int) -> Tower:
    width = int(cfg.get("width", 512))
    tokens = int(cfg.get("context_length", 77)) + bool(cfg.get("embed_cls"))
    projection = 0 if cfg.get("proj_type") == "none" else width * dim
    return Tower(
        tokens,
        width,
        int(cfg.get("layers", 12)),
        int(width * cfg.get("mlp_ratio", 4.0)),
        end_flop=2 * projection,
        end_parameters=(int(cfg.get("vocab_size", 49408)) + tokens + 2) * width + projection,
    )


def _attention_pool(cfg: Mapping[str, Any], tokens: int, width: int, dim: int) -> tuple[int, int]:
    """CoCa's pooling: learned queries attend to the tokens. FLOP and parameters."""
    queries = int(cfg.get("attn_pooler_queries", 256))
    weights = 2 * dim**2 + 2 * dim * width  # queries and output; keys and values
    flop = 4 * queries * dim**2 + 4 * tokens * width * dim + 4 * queries * tokens * dim
    return flop, weights + 4 * dim + queries * dim + 2 * dim + 2 * width


def _pair(value: Any) -> tuple[int, int]:
    high, wide = (value, value) if isinstance(value, int) else value
    return int(high), int(wide)
