"""Opening an exported classifier, and refusing what is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from mudg_core.errors import ModelError
from mudg_core.predict.model import open_model
from mudg_core.train.export import load_classifier
from tests.support.exported import CLASSES, TEMPERATURE


@pytest.mark.parametrize("prompts", ["single", "averaged"])
def test_open(folder: Path, prompts: str) -> None:
    model = open_model(folder, prompts)
    assert model.classes == CLASSES and model.temperature == TEMPERATURE
    assert (model.texts == load_classifier(folder)[prompts]).all()


def test_probabilities_are_the_softmax_of_the_cosines(folder: Path) -> None:
    model = open_model(folder)
    features = np.random.default_rng(0).normal(size=(5, 16)).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    wanted = torch.from_numpy(TEMPERATURE * features @ model.texts.T).softmax(dim=1).numpy()
    assert model.probabilities(model.cosines(features)) == pytest.approx(wanted, abs=1e-6)
    huge = np.array([[1e4, 0.0, 0.0]], dtype=np.float32)
    assert model.probabilities(huge).tolist() == [[1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("classes.json", None),
        ("classes.json", "{"),
        ("classes.json", "[]"),
        ("classes.json", json.dumps({"classes": ["a"]})),
        ("classes.json", json.dumps({"classes": ["a", "b"], "temperature": {"single": 1.0}})),
        ("classifier.safetensors", None),
        ("classifier.safetensors", "no tensors"),
        ("classifier.safetensors", {"averaged": torch.zeros(3, 16)}),
        ("classifier.safetensors", {"single": torch.zeros(3, 15)}),
        ("classifier.safetensors", {"single": torch.full((3, 16), torch.nan)}),
        ("open_clip_model.safetensors", None),
        ("open_clip_model.safetensors", "no weights"),
        ("open_clip_config.json", "{"),
    ],
)
def test_what_is_no_classifier_is_refused(folder: Path, tmp_path: Path, file: str, content: Any) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    if content is None:
        (broken / file).unlink()
    elif isinstance(content, str):
        (broken / file).write_text(content)
    else:
        save_file(content, broken / file)
    with pytest.raises(ModelError) as caught:
        open_model(broken)
    assert caught.value.fix and str(broken) in caught.value.where
