"""The finetuned model as files that open_clip loads with no trace of us, and back again.

    open_clip_model.safetensors, open_clip_config.json   the network: `local-dir:` of open_clip
    classifier.safetensors   text features, one row a class, from single and from averaged prompts
    classes.json             class names, prompts, and the temperatures that make probabilities of cosines
    README.md                the model card (only in what a user gets, see `export_with_card`)

An image's class is the row of `single` (or `averaged`) with the highest dot product, and the softmax of these
times the temperature its probability. The soft prompt has no place in an open_clip model; what it does is in
those features.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from mudg_core.encode.models import Clip, load_clip
from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE
from mudg_core.target.queries import Queries
from mudg_core.train.card import CARD_FILE, CardFacts, card
from mudg_core.train.student import Student, initial_student, interpolate

CLASSIFIER_FILE = "classifier.safetensors"
CLASSES_FILE = "classes.json"
CHUNK = 256  # prompts that go through the text tower together: memory is that of so many, not of all classes
Encode = Callable[[Sequence[str]], Tensor]


def export_with_card(student: Student, queries: Queries, facts: CardFacts, out: Path) -> None:
    """What a user gets: the model with its card. Without any finetuning in it, classes are said as zero-shot
    says them."""
    export(student, queries, out, facts.temperature, plain=facts.alpha == 0)
    (out / CARD_FILE).write_text(card(facts), encoding="utf-8")


@torch.inference_mode()
def export(student: Student, queries: Queries, out: Path, temperature: float, *, plain: bool = False) -> None:
    """Writes the model, with the classifier for the classes that it was trained on. `plain` leaves the soft
    prompt out of its text features."""
    network = {name: tensor.contiguous() for name, tensor in student.network.state_dict().items()}
    save_file(network, out / WEIGHTS_FILE)
    (out / CONFIG_FILE).write_text(json.dumps(student.clip.config, indent=2, sort_keys=True) + "\n")
    features = class_features(queries, _plain(student) if plain else _prompted(student))
    features["soft_prompt"] = student.soft_prompt.detach()
    save_file({name: tensor.contiguous() for name, tensor in features.items()}, out / CLASSIFIER_FILE)
    facts = {
        "classes": queries.target.classes,
        "prompts": queries.target.prompts(),
        "temperature": {"single": temperature, "averaged": temperature},
        "soft_prompt_replaces": student.prompt,
    }
    (out / CLASSES_FILE).write_text(json.dumps(facts, indent=2) + "\n")


def class_features(queries: Queries, encode: Encode) -> dict[str, Tensor]:
    """Of the plain prompt of each class, and the mean over its augmentations. The latter is not of unit
    length: products with it are the mean of the cosines."""
    prompts = queries.prompts()
    total = encode(prompts[0]).double()
    for texts in prompts[1:]:
        total += encode(texts)
    return {"single": encode(queries.target.prompts()), "averaged": (total / len(prompts)).float()}


def load_classifier(folder: Path) -> dict[str, Any]:
    """Text features by name, as arrays."""
    return {name: tensor.numpy() for name, tensor in load_file(folder / CLASSIFIER_FILE).items()}


def _prompted(student: Student) -> Encode:
    def encode(texts: Sequence[str]) -> Tensor:
        tokens = student.tokens(texts)
        parts = [tokens[first : first + CHUNK] for first in range(0, len(tokens), CHUNK)]
        return torch.cat([student.text_features(part) for part in parts])

    return encode


def _plain(student: Student) -> Encode:
    return lambda texts: torch.from_numpy(student.clip.encode_texts(texts))


def open_student(folder: Path, device: str) -> Student:
    """A finetuned student as it was exported: its network, and the soft prompt that lies beside it."""
    facts = json.loads((folder / CLASSES_FILE).read_text())
    student = initial_student(load_clip(f"local-dir:{folder}", device), facts["soft_prompt_replaces"])
    with torch.no_grad():
        student.soft_prompt.copy_(torch.from_numpy(load_classifier(folder)["soft_prompt"]))
    return student


def part_way(initial: Callable[[], Clip], tuned: Path, alpha: float, device: str) -> Student:
    """The exported student, `alpha` of the way from the initial model. Only what is needed is loaded: at
    either end that is one model and not three."""
    if alpha == 1:
        return open_student(tuned, device)
    prompt = json.loads((tuned / CLASSES_FILE).read_text())["soft_prompt_replaces"]
    start = initial_student(initial(), prompt)
    return start if alpha == 0 else interpolate(start, open_student(tuned, device), alpha)
