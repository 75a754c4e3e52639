"""FLOP of CLIP towers: by hand, and against what torch counts in the real networks (on no device at all)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mudg_core.encode.models import model_config, open_clip
from mudg_core.errors import ModelError
from mudg_core.plan.workload import towers

TINY: dict[str, Any] = {
    "embed_dim": 5,
    "vision_cfg": {"image_size": [4, 8], "patch_size": 2, "width": 6, "layers": 2, "head_width": 3},
    "text_cfg": {
        "context_length": 3,
        "vocab_size": 11,
        "width": 4,
        "heads": 2,
        "layers": 1,
        "mlp_ratio": 1.5,
    },
}


def test_by_hand() -> None:
    """Image: 2 x 4 patches and the class token are 9 tokens; text: 3 tokens, hidden layer 6."""
    tiny = towers(TINY)
    block = 2 * 9 * (6 * 18 + 6 * 6 + 6 * 24 + 24 * 6) + 2 * (2 * 9 * 9 * 6)
    assert tiny.image.flop == 2 * block + 2 * 8 * (3 * 2 * 2) * 6 + 2 * 6 * 5
    assert tiny.text.flop == 2 * 3 * (4 * 12 + 4 * 4 + 2 * 4 * 6) + 2 * (2 * 3 * 3 * 4) + 2 * 4 * 5
    assert (tiny.dim, tiny.image_size) == (5, 4)


def test_published_size_of_vit_b_32() -> None:
    """151,277,313 parameters, of which one is the logit scale; 8.8 and 6.0 GFLOP."""
    found = towers(model_config("ViT-B-32/openai"))
    assert found.parameters + 1 == 151_277_313
    assert (found.image.flop, found.text.flop) == (8_817_623_040, 5_959_540_736)


@pytest.mark.parametrize(
    "name", ["ViT-L-14", "ViT-H-14", "ViT-g-14", "ViT-M-32-alt", "ViT-B-16-plus-240", "coca_ViT-B-32"]
)
def test_torch_counts_the_same(name: str) -> None:
    found = towers(model_config(f"{name}/any"))
    with torch.device("meta"):  # shapes and no memory
        network: Any = open_clip.create_model(name, load_weights=False, device="meta").train()
    side, context = found.image_size, network.context_length
    with FlopCounterMode(display=False) as image:
        network.encode_image(torch.zeros(2, 3, side, side, device="meta"))
    with FlopCounterMode(display=False) as text:
        network.encode_text(torch.zeros(2, context, dtype=torch.long, device="meta"))
    assert (2 * found.image.flop, 2 * found.text.flop) == (image.get_total_flops(), text.get_total_flops())
    assert found.image.parameters == sum(p.numel() for p in network.visual.parameters())


def test_own_models_by_their_own_config() -> None:
    found = towers(model_config("demo:index"))
    tokens = [tower.block_bytes / (4 * 16 * tower.width) for tower in (found.image, found.text)]
    assert (found.dim, *tokens) == (128, 65, 24)


def test_a_configuration_does_not_decide_how_much_is_built() -> None:
    one, many = (
        towers(TINY | {"vision_cfg": TINY["vision_cfg"] | {"layers": layers, "image_size": [4, 8]}})
        for layers in (1, 10**9)
    )
    assert many.image.flop - one.image.flop == (10**9 - 1) * one.image.block_flop
    wide = {"image_size": 10_000, "patch_size": 1, "width": 64, "pos_embed_type": "sin_cos_2d"}
    assert towers(TINY | {"vision_cfg": wide}).image.layers == 12


@pytest.mark.parametrize("name", ["RN50/openai", "ViT-B-16-SigLIP/webli", "roberta-ViT-B-32/any"])
def test_towers_without_a_formula_are_told(name: str) -> None:
    with pytest.raises(ModelError, match="no estimate") as caught:
        towers(model_config(name), name)
    assert caught.value.where == name


@pytest.mark.parametrize(
    "config",
    [{}, {**TINY, "vision_cfg": None}, {**TINY, "vision_cfg": {"patch_size": 0}}, {**TINY, "embed_dim": "x"}],
)
def test_nonsense_is_a_model_error(config: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="not a configuration"):
        towers(config)
