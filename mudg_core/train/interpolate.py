"""Weights between the initial and the finetuned student (WiSE-FT).

Part of the way is often better than all of it away from the training images, and costs no training.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import torch

from mudg_core.encode.models import Clip, load_clip
from mudg_core.train.export import CLASSES_FILE, load_classifier
from mudg_core.train.student import Student


def initial_student(clip: Clip, prompt: str) -> Student:
    """The student before any training; `clip` becomes its own."""
    return Student(clip, 1, prompt).requires_grad_(False).eval()


def open_student(folder: Path, device: str) -> Student:
    """A finetuned student as it was exported: its network, and the soft prompt that lies beside it."""
    facts = json.loads((folder / CLASSES_FILE).read_text())
    student = initial_student(load_clip(f"local-dir:{folder}", device), facts["soft_prompt_replaces"])
    with torch.no_grad():
        student.soft_prompt.copy_(torch.from_numpy(load_classifier(folder)["soft_prompt"]))
    return student


@torch.no_grad()
def between(initial: Student, tuned: Student, alpha: float) -> Student:
    """(1 - alpha) initial + alpha finetuned weights; both stay as they are. The tokenizer, which has no
    weights and takes longer to copy than they do, is shared."""
    tokenizer = tuned.clip.tokenizer
    mixed = copy.deepcopy(tuned, {id(tokenizer): tokenizer})
    start = dict(initial.named_parameters())
    for name, parameter in mixed.named_parameters():
        parameter.copy_(torch.lerp(start[name], parameter, alpha))
    return mixed


def part_way(initial: Callable[[], Clip], tuned: Path, alpha: float, device: str) -> Student:
    """The exported student, `alpha` of the way from the initial model. Only what is needed is loaded: at
    either end that is one model and not three."""
    if alpha == 1:
        return open_student(tuned, device)
    prompt = json.loads((tuned / CLASSES_FILE).read_text())["soft_prompt_replaces"]
    start = initial_student(initial(), prompt)
    return start if alpha == 0 else between(start, open_student(tuned, device), alpha)
