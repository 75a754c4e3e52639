"""The finetuned model as files that open_clip loads with no trace of us.

    open_clip_model.safetensors, open_clip_config.json   the network: `local-dir:` of open_clip
    classifier.safetensors   text features, one row a class, from single and from averaged prompts
    classes.json             class names and prompts

An image's class is the row of `single` (or `averaged`) with the highest dot product. The soft prompt has no
place in an open_clip model; what it does is in those features.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE
from mudg_core.target.queries import Queries
from mudg_core.train.student import Student

CLASSIFIER_FILE = "classifier.safetensors"
CLASSES_FILE = "classes.json"


@torch.inference_mode()
def export(student: Student, queries: Queries, out: Path) -> None:
    """Writes the model, with the classifier for the classes that it was trained on."""
    plain, prompts = queries.target.prompts(), queries.prompts()
    network = {name: tensor.contiguous() for name, tensor in student.network.state_dict().items()}
    save_file(network, out / WEIGHTS_FILE)
    (out / CONFIG_FILE).write_text(json.dumps(student.clip.config, indent=2, sort_keys=True) + "\n")
    single = student.text_features(student.tokens(plain))
    augmented = torch.stack([student.text_features(student.tokens(texts)) for texts in prompts])
    features = {
        "single": single,
        "averaged": augmented.mean(dim=0),
        "soft_prompt": student.soft_prompt.detach(),
    }
    save_file({name: tensor.contiguous() for name, tensor in features.items()}, out / CLASSIFIER_FILE)
    facts = {"classes": queries.target.classes, "prompts": plain, "soft_prompt_replaces": student.prompt}
    (out / CLASSES_FILE).write_text(json.dumps(facts, indent=2) + "\n")


def load_classifier(folder: Path) -> dict[str, Any]:
    """Text features by name, as arrays."""
    return {name: tensor.numpy() for name, tensor in load_file(folder / CLASSIFIER_FILE).items()}
