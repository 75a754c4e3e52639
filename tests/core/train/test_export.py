"""The finished model, loaded by open_clip alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from mudg_core.encode.models import Clip, load_clip, open_clip
from mudg_core.settings import TrainSettings
from mudg_core.target.methods import of_descriptors
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.export import CLASSES_FILE, export, load_classifier
from mudg_core.train.finetune import finetune
from mudg_core.train.student import Student
from tests.core.encode.tiny import another

CLASSES = ["cat", "car", "sea"]
PLAIN = [f"a photo of a {name}." for name in CLASSES]
PROMPTS = [[f"a photo of a {name}, which is {word}." for name in CLASSES] for word in ("wet", "old")]
TARGET = Target(name="things", classes=tuple(CLASSES))
QUERIES = Queries.of(TARGET, of_descriptors(TARGET, "random", ["which is wet", "which is old"]))


@pytest.fixture(scope="module")
def student(loaded: Clip) -> Student:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 64, 64, 3), dtype=np.uint8)
    settings = TrainSettings(iterations=2, batch_size=6, learning_rate=0.05, ema=0.1)
    return finetune(another(loaded), pixels, np.array([0, 1, 2, 0, 1, 2]), PROMPTS, settings, seed=0).student


@pytest.fixture(scope="module")
def folder(student: Student, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export")
    export(student, QUERIES, out)
    return out


def test_plain_open_clip_sees_what_the_student_sees(folder: Path, student: Student, loaded: Clip) -> None:
    network, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    images = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = network.eval().encode_image(images, normalize=True)
        assert torch.allclose(found, student.image_features(images), atol=1e-6)
        assert not torch.allclose(found, loaded.network.encode_image(images, normalize=True), atol=1e-4)
    assert f"mean={loaded.mean}" in repr(preprocess).replace("[", "(").replace("]", ")")


def test_our_own_loader_reads_it_too(folder: Path, loaded: Clip) -> None:
    clip = load_clip(f"local-dir:{folder}")
    assert (clip.mean, clip.std, clip.image_size, clip.dim) == (loaded.mean, loaded.std, 64, 16)


def test_classifier(folder: Path, student: Student) -> None:
    found = load_classifier(folder)
    assert {name: array.shape for name, array in found.items()} == {
        "single": (3, 16),
        "averaged": (3, 16),
        "soft_prompt": (3, 32),
    }
    with torch.no_grad():
        single = student.text_features(student.tokens(PLAIN)).numpy()
        each = [student.text_features(student.tokens(texts)).numpy() for texts in PROMPTS]
    assert found["single"] == pytest.approx(single, abs=1e-6)
    assert found["averaged"] == pytest.approx((each[0] + each[1]) / 2, abs=1e-6)
    assert (found["soft_prompt"] == student.soft_prompt.detach().numpy()).all()


def test_classes_are_told(folder: Path) -> None:
    assert json.loads((folder / CLASSES_FILE).read_text()) == {
        "classes": CLASSES,
        "prompts": PLAIN,
        "soft_prompt_replaces": "a photo of",
    }
    assert not [file for file in folder.iterdir() if file.suffix in (".bin", ".pt", ".pth", ".pkl")]
