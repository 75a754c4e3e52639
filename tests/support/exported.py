"""A tiny classifier as a user gets it, and the facts on its card; some names are hostile."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from mudg_core.encode.models import Clip
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.card import CardFacts, Origin
from mudg_core.train.export import export_with_card
from mudg_core.train.student import Student, initial_student

CLASSES = ("cat", "<b>no</b> | `x`", "=sea")
COLOURS = ("red", "green", "blue")
TARGET = Target(name="things", classes=CLASSES)
QUERIES = Queries.of(TARGET, of_descriptors(TARGET, "random", ["which is wet", "which is old"]))
TEMPERATURE = 20.0
FACTS = CardFacts(
    target="things",
    classes=CLASSES,
    template="a photo of a {}.",
    temperature=TEMPERATURE,
    base="demo:student",
    base_digest="ab" * 32,
    seed=0,
    images=(3, 4, 0),
    origins=(Origin("webdataset", "s3://bucket/pool", 2, 7),),
    corpus_rows=1000,
    corpus_shards=4,
    made_from={"model": "model/" + "12" * 32},
    settings={"train.iterations": 4},
)


def facts(**changes: Any) -> CardFacts:
    return replace(FACTS, **changes)


def finetuned(clip: Clip) -> Student:
    """As if it had been trained: every weight somewhat elsewhere."""
    own = dataclasses.replace(clip, network=copy.deepcopy(clip.network))
    student = initial_student(own, "a photo of")
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=random))
    return student


def exported(clip: Clip, out: Path) -> Path:
    """The folder that a user gets."""
    out.mkdir(parents=True, exist_ok=True)
    export_with_card(finetuned(clip), QUERIES, FACTS, out)
    return out


def pictures(folder: Path, side: int = 96, suffix: str = "png") -> list[Path]:
    """One image of each colour, no two alike, wider than high."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{number}.{suffix}" for number in range(len(COLOURS))]
    for number, (file, colour) in enumerate(zip(files, COLOURS, strict=True)):
        image = Image.new("RGB", (side + 8, side), colour)
        image.paste("white", (0, 0, 10 + 20 * number, 30))
        image.save(file)
    return files
