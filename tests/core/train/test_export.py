"""The finished model, loaded by open_clip alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from mudg_core.encode.models import Clip, load_clip, open_clip
from mudg_core.settings import TrainSettings
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train import export as module
from mudg_core.train.card import Verdict
from mudg_core.train.export import CLASSES_FILE, export, export_with_card, load_classifier
from mudg_core.train.finetune import finetune
from mudg_core.train.student import Student, initial_student
from tests.core.encode.tiny import another
from tests.support.exported import facts, pictures

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
    export(student, QUERIES, out, temperature=20.0)
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
        "temperature": {"single": 20.0, "averaged": 20.0},
        "soft_prompt_replaces": "a photo of",
    }
    assert not [file for file in folder.iterdir() if file.suffix in (".bin", ".pt", ".pth", ".pkl")]


def test_prompts_in_parts_give_the_same_features(
    folder: Path, student: Student, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    export(student, QUERIES, tmp_path, temperature=20.0)
    whole, parts = load_classifier(folder), load_classifier(tmp_path)
    assert all(parts[name] == pytest.approx(whole[name], abs=1e-6) for name in whole)


def test_a_model_without_finetuning_says_classes_as_zero_shot_does(loaded: Clip, tmp_path: Path) -> None:
    """The student puts its prompt before a text that begins otherwise, and zero-shot does not."""
    target = Target(name="things", classes=("cat", "car"), template="an etching of a {}.")
    queries = Queries.of(target, of_descriptors(target, "random", ["which is wet"]))
    start = initial_student(another(loaded), "a photo of")
    verdict = Verdict(0.0, False)
    export_with_card(start, queries, facts(verdict=verdict), tmp_path)
    texts = load_classifier(tmp_path)["single"]
    assert texts == pytest.approx(loaded.encode_texts(target.prompts()), abs=1e-6)
    with torch.no_grad():
        prompted = start.text_features(start.tokens(target.prompts())).numpy()
    assert texts != pytest.approx(prompted, abs=1e-3)


def code_of(card: str) -> str:
    """The one sample in a model card."""
    (sample,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    return str(sample)


def test_the_code_in_the_card_runs(
    student: Student, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    export_with_card(student, QUERIES, facts(classes=tuple(CLASSES)), tmp_path)
    (file,) = pictures(tmp_path, suffix="jpg")[:1]
    file.rename(tmp_path / "image.jpg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code_of((tmp_path / "README.md").read_text()), names)
    image = student.clip.pixels(Image.open(tmp_path / "image.jpg"))
    features = student.clip.encode_images(image[None])
    logits = torch.from_numpy(20.0 * features @ load_classifier(tmp_path)["single"].T)
    wanted = logits.softmax(dim=-1)[0]
    assert torch.allclose(names["probabilities"], wanted, atol=1e-4)
    assert capsys.readouterr().out.startswith(CLASSES[int(wanted.argmax())])
