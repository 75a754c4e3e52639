"""What is trained, and that before training the soft prompt changes nothing."""

from __future__ import annotations

import pytest
import torch

from mudg_core.encode.models import Clip, open_clip
from mudg_core.errors import ModelError
from mudg_core.train.student import Student, trainable_names

ENDS = {
    "visual.ln_post.weight",
    "visual.ln_post.bias",
    "visual.proj",
    "ln_final.weight",
    "ln_final.bias",
    "text_projection",
}


def on_meta(name: str) -> torch.nn.Module:
    config = open_clip.get_model_config(name)
    with torch.device("meta"):
        return open_clip.CLIP(**config)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("name", "vision", "text"), [("ViT-B-16", 12, 12), ("ViT-L-14", 24, 12)])
def test_last_three_blocks_and_both_ends(name: str, vision: int, text: int) -> None:
    network = on_meta(name)
    prefixes = [f"visual.transformer.resblocks.{i}." for i in range(vision - 3, vision)]
    prefixes += [f"transformer.resblocks.{i}." for i in range(text - 3, text)]
    everything = [parameter for parameter, _ in network.named_parameters()]
    expected = {p for p in everything if any(p.startswith(prefix) for prefix in prefixes)} | ENDS
    assert set(everything) >= ENDS
    assert len(expected) == 6 * 12 + 6  # twelve tensors a block
    found = trainable_names(network, 3)
    assert set(found) == expected and len(found) == len(expected)


def test_more_blocks_than_there_are_means_all_blocks() -> None:
    found = trainable_names(on_meta("ViT-B-16"), 64)
    assert "visual.transformer.resblocks.0.ln_1.weight" in found
    assert not {"visual.conv1.weight", "token_embedding.weight", "logit_scale", "positional_embedding"} & set(
        found
    )


def test_a_resnet_tower_is_refused() -> None:
    with pytest.raises(ModelError, match="both towers") as caught:
        trainable_names(on_meta("RN50"), 3)
    assert "ViT" in caught.value.fix


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
