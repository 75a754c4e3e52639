"""What is trained, and that before training the soft prompt changes nothing."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
import torch

from mudg_core.encode.models import Clip, open_clip
from mudg_core.encode.open_clip_support import load_timm
from mudg_core.errors import ModelError
from mudg_core.settings import load_settings
from mudg_core.train.student import Student, trainable_names
from tests.core.encode.tiny import MODEL, another

TEXT_ENDS = {"ln_final.weight", "ln_final.bias", "text_projection"}
ENDS = {"visual.ln_post.weight", "visual.ln_post.bias", "visual.proj"} | TEXT_ENDS
ATTENTION = ["attn.in_proj_weight", "attn.in_proj_bias", "attn.out_proj.weight", "attn.out_proj.bias"]
BLOCK = ATTENTION + [
    f"{part}.{kind}" for part in ("ln_1", "ln_2", "mlp.c_fc", "mlp.c_proj") for kind in ("weight", "bias")
]


def on_meta(name: str, **changes: Any) -> torch.nn.Module:
    load_timm(open_clip.get_model_config(name))
    return open_clip.create_model(name, load_weights=False, device="meta", **changes)  # type: ignore[no-any-return]


def blocks(prefix: str, first: int, end: int) -> set[str]:
    return {f"{prefix}transformer.resblocks.{i}.{name}" for i in range(first, end) for name in BLOCK}


@pytest.mark.parametrize(("name", "vision"), [("ViT-B-16", 12), ("ViT-L-14", 24)])
def test_last_three_blocks_and_both_ends(name: str, vision: int) -> None:
    found = trainable_names(on_meta(name), 3)
    assert set(found) == blocks("visual.", vision - 3, vision) | blocks("", 9, 12) | ENDS
    assert len(found) == 6 * 12 + 6


@pytest.mark.parametrize(("name", "vision"), [("ViT-B-16", 12), ("ViT-L-14", 24)])
def test_the_authors_code_trains_vision_blocks_from_the_ninth_on(name: str, vision: int) -> None:
    """The last three of ViT-B/16, and 9 to 23 of ViT-L/14."""
    settings = load_settings(overrides={"profile": "author-code"}, environ={}).train
    found = trainable_names(on_meta(name), settings.blocks, settings.vision_from)
    assert set(found) == blocks("visual.", 9, vision) | blocks("", 9, 12) | ENDS


def test_a_late_start_still_trains_the_last_blocks() -> None:
    network = on_meta("ViT-B-16")
    assert trainable_names(network, 3, 11) == trainable_names(network, 3)


def test_a_resnet_trains_its_last_bottlenecks_and_its_pool() -> None:
    found = trainable_names(on_meta("RN50"), 3)
    layers = [f"{kind}{i}" for i in (1, 2, 3) for kind in ("conv", "bn")]
    kinds = {"conv": ("weight",), "bn": ("weight", "bias")}
    expected = {
        f"visual.layer4.{i}.{part}.{kind}" for i in range(3) for part in layers for kind in kinds[part[:-1]]
    }
    expected |= {f"visual.layer4.0.downsample.{part}" for part in ("0.weight", "1.weight", "1.bias")}
    pool = {f"{part}_proj.{kind}" for part in "qkvc" for kind in ("weight", "bias")} | {
        "positional_embedding"
    }
    expected |= {f"visual.attnpool.{name}" for name in pool}
    assert set(found) == expected | blocks("", 9, 12) | TEXT_ENDS
    more = set(trainable_names(on_meta("RN50"), 4)) - set(found)
    assert {name for name in more if name.startswith("visual.")} == {
        f"visual.layer3.5.{part}.{kind}" for part in layers for kind in kinds[part[:-1]]
    }


def test_a_text_tower_of_its_own_has_other_names() -> None:
    found = trainable_names(on_meta("ViT-B-16", force_custom_text=True), 3)
    texts = {f"text.{name}" for name in blocks("", 9, 12) | TEXT_ENDS}
    assert set(found) == blocks("visual.", 9, 12) | (ENDS - TEXT_ENDS) | texts


def test_more_blocks_than_there_are_means_all_blocks() -> None:
    found = trainable_names(on_meta("ViT-B-16"), 64)
    assert "visual.transformer.resblocks.0.ln_1.weight" in found
    assert not {"visual.conv1.weight", "token_embedding.weight", "logit_scale", "positional_embedding"} & set(
        found
    )


@pytest.mark.parametrize("name", ["ViT-B-16-SigLIP", "coca_ViT-B-32", "convnext_base"])
def test_towers_of_other_kinds_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match="cannot be trained") as caught:
        trainable_names(on_meta(name), 3)
    assert "ViT-B-16" in caught.value.fix


def test_a_network_without_texts_is_refused() -> None:
    network = on_meta("ViT-B-16", force_custom_text=True)
    del network.text
    with pytest.raises(ModelError, match="there is none"):
        trainable_names(network, 3)


def test_a_tokenizer_without_a_start_is_refused(tiny: Clip) -> None:
    with pytest.raises(ModelError, match="start token"):
        Student(dataclasses.replace(tiny, tokenizer=object()), 3, "a photo of")


PROMPTS = [
    "a photo of a cat.",
    "A photo of the old dog, which is wet.",
    "a photo of",
    "a photo of a " + "long " * 40,
]


def test_before_training_usual_prompts_are_as_they_were(tiny: Clip) -> None:
    student = Student(tiny, 3, "a photo of")
    assert student.soft_prompt.shape == (3, 32)
    with torch.no_grad():
        found = student.text_features(student.tokens(PROMPTS))
        expected = tiny.network.encode_text(tiny.tokens(PROMPTS), normalize=True)
    assert torch.allclose(found, expected, atol=1e-6)


def test_the_prompt_goes_in_front_of_any_other_text(tiny: Clip) -> None:
    student = Student(tiny, 3, "a photo of")
    with torch.no_grad():
        found = student.text_features(student.tokens(["cat, which is wet."]))
        expected = tiny.network.encode_text(tiny.tokens(["a photo of cat, which is wet."]), normalize=True)
    assert torch.allclose(found, expected, atol=1e-6)


def test_the_soft_prompt_is_what_the_text_begins_with(tiny: Clip) -> None:
    """Set to the words of another prompt, it must act as these words."""
    student = Student(tiny, 3, "a photo of")
    with torch.no_grad():
        words = torch.tensor(tiny.tokenizer.encode("some old sketch"))
        student.soft_prompt.copy_(tiny.network.token_embedding(words))
        found = student.text_features(student.tokens(PROMPTS[:2]))
        texts = [text.lower().replace("a photo of", "some old sketch") for text in PROMPTS[:2]]
        expected = tiny.network.encode_text(tiny.tokens(texts), normalize=True)
    assert torch.allclose(found, expected, atol=1e-6)


def test_only_the_chosen_want_gradients(tiny: Clip) -> None:
    student = Student(tiny, 2, "a photo of")
    wanting = {name for name, parameter in tiny.network.named_parameters() if parameter.requires_grad}
    assert wanting == set(trainable_names(tiny.network, 2))
    assert next(iter(student.trained_parameters())) == "soft_prompt"
    assert set(student.trained_parameters()) == wanting | {"soft_prompt"}


def test_image_features_are_the_networks(tiny: Clip) -> None:
    images = torch.randn(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = Student(tiny, 3, "a photo of").image_features(images)
        expected = tiny.network.encode_image(images)
    assert torch.allclose(found, expected / expected.norm(dim=1, keepdim=True), atol=1e-6)


VARIANTS: dict[str, dict[str, Any]] = {
    "custom text": {"custom_text": True},
    "resnet": {"vision_cfg": {"image_size": 64, "layers": [1, 1, 2, 2], "width": 16, "patch_size": None}},
    "averaged": {"vision_cfg": MODEL["vision_cfg"] | {"pool_type": "avg", "final_ln_after_pool": True}},
    "both ways": {
        "custom_text": True,
        "text_cfg": MODEL["text_cfg"] | {"no_causal_mask": True, "pool_type": "last"},
    },
    "end token": {
        "custom_text": True,
        "text_cfg": MODEL["text_cfg"] | {"pool_type": "eos", "eos_id": 49407, "proj_bias": True},
    },
    "other blocks": {
        "vision_cfg": MODEL["vision_cfg"] | {"qk_norm": True},
        "text_cfg": MODEL["text_cfg"] | {"qk_norm": True},
    },
}


def variant(clip: Clip, name: str) -> Clip:
    config = copy.deepcopy(MODEL | VARIANTS[name])
    kind = open_clip.CustomTextCLIP if config.pop("custom_text", False) else open_clip.CLIP
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = kind(**config).eval()
    return dataclasses.replace(clip, network=network)


@pytest.mark.parametrize("name", VARIANTS)
def test_features_are_open_clips_whatever_the_towers(loaded: Clip, name: str) -> None:
    clip = variant(loaded, name)
    student = Student(clip, 2, "a photo of")
    images = torch.randn(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = clip.network.encode_image(images, normalize=True)
        assert torch.allclose(student.image_features(images), expected, atol=1e-6)
        expected = clip.network.encode_text(clip.tokens(PROMPTS), normalize=True)
        assert torch.allclose(student.text_features(student.tokens(PROMPTS)), expected, atol=1e-6)
    trained = student.trained_parameters()
    loss = student.image_features(images).sum() + student.text_features(student.tokens(PROMPTS)).sum()
    loss.backward()
    assert all(parameter.grad is not None for parameter in trained.values())
    assert all(p.grad is None for n, p in student.network.named_parameters() if n not in trained)


def test_batch_norms_do_not_drift(loaded: Clip) -> None:
    clip = variant(loaded, "resnet")
    clip.network.train()
    student = Student(clip, 2, "a photo of")
    before = {name: buffer.clone() for name, buffer in student.network.named_buffers()}
    student.image_features(torch.randn(3, 3, 64, 64, generator=torch.Generator().manual_seed(0)))
    assert all(torch.equal(before[name], buffer) for name, buffer in student.network.named_buffers())


def test_a_short_text_is_the_same_beside_a_long_one(loaded: Clip) -> None:
    """Texts are cut after the last end of a batch."""
    student = Student(another(loaded), 2, "a photo of")
    with torch.no_grad():
        alone = student.text_features(student.tokens(PROMPTS[2:3]))
        together = student.text_features(student.tokens(PROMPTS))[2:3]
    assert torch.allclose(alone, together, atol=1e-6)


def test_texts_that_begin_alike_have_the_gradients_of_each_alone(tiny: Clip) -> None:
    texts = ["a photo of a cat, wet.", "a photo of a cat, which is old.", "a photo of a dog."]
    student = Student(tiny, 3, "a photo of")
    tokens = student.tokens(texts)

    def gradients(batches: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        student.zero_grad()
        features = torch.cat([student.text_features(batch) for batch in batches])
        (features * torch.arange(features.numel()).view_as(features)).sum().backward()
        wanted = student.trained_parameters().items()
        return {name: tensor.grad.clone() for name, tensor in wanted if tensor.grad is not None}

    together, alone = gradients([tokens]), gradients(list(torch.split(tokens, 1)))
    assert together.keys() == alone.keys() and "soft_prompt" in together
    for name, gradient in together.items():
        torch.testing.assert_close(gradient, alone[name], rtol=1e-4, atol=1e-4 * float(gradient.abs().max()))
