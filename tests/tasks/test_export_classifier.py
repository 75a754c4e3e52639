"""The stage that hands a model over: weights at the gate's alpha, and a card that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from mudg_core.encode.models import Clip
from mudg_core.encode.weights import WEIGHTS_FILE
from mudg_core.predict.model import open_model
from mudg_core.settings import Settings
from mudg_core.storage import Facts, Recipe
from mudg_core.train.export import CLASSES_FILE, CLASSIFIER_FILE, export
from tasks.export_classifier import export_classifier
from tasks.policy import Work
from tests.core.encode.tiny import loaded, tiny_folder
from tests.support.exported import CLASSES, QUERIES, finetuned
from tests.support.handed import Made, make_all
from tests.support.training_sets import store_at

__all__ = ["loaded", "tiny_folder"]


@pytest.fixture
def made(loaded: Clip, tmp_path: Path) -> Made:
    return make_all(store_at(tmp_path), lambda folder: export(finetuned(loaded), QUERIES, folder, 20.0))


@pytest.fixture
def work(made: Made, tiny_folder: Path, tmp_path: Path) -> Work:
    train = {"model": f"local-dir:{tiny_folder}", "temperature": 20.0}
    settings = Settings().replace({"storage": made.store.settings.model_dump(), "train": train})
    (tmp_path / "out").mkdir()
    checkpoints = made.store.checkpoints(Recipe(stage="classifier", algorithm=1))
    return Work(made.store, settings, tmp_path / "out", checkpoints)


def handed(work: Work, made: Made, **more: Any) -> Facts:
    return export_classifier.function(work, target="things", description="", **made.refs, **more)


def weights(folder: Path) -> torch.Tensor:
    return torch.cat([tensor.flatten() for _, tensor in sorted(load_file(folder / WEIGHTS_FILE).items())])


@pytest.mark.parametrize("alpha", [None, 0.0, 0.3, 1.0])
def test_weights_are_as_far_as_the_verdict_says(
    work: Work, made: Made, tiny_folder: Path, alpha: float | None
) -> None:
    more = {} if alpha is None else {"verdict": made.verdict(alpha)}
    facts = handed(work, made, **more).facts
    share = 1.0 if alpha is None else alpha
    assert facts["alpha"] == share and facts["classes"] == 3 and facts["images"] == 6
    start, end = weights(tiny_folder), weights(made.store.folder(made.refs["model"]))
    assert torch.allclose(weights(work.scratch), (1 - share) * start + share * end, atol=1e-6)
    assert not torch.allclose(start, end, atol=1e-3)
    assert (str(tiny_folder) in (work.scratch / "README.md").read_text()) is False


def test_the_folder_is_what_predict_takes(work: Work, made: Made) -> None:
    handed(work, made)
    model = open_model(work.scratch)
    assert model.classes == CLASSES and model.temperature == 20.0
    exported = made.store.folder(made.refs["model"])
    for file in (CLASSES_FILE, CLASSIFIER_FILE, WEIGHTS_FILE):
        assert (work.scratch / file).read_bytes() == (exported / file).read_bytes()


def test_scores_and_warnings_are_told(work: Work, made: Made) -> None:
    facts = handed(work, made, scores=made.scores, warnings=made.warnings)
    assert facts.volatile == {"README.md"}
    card = (work.scratch / "README.md").read_text()
    assert "60.0" in card and "few images of cat" in card and "s3://bucket/pool" in card
    assert f"model/{made.refs['model'].key}" in card


def test_key_depends_on_verdict_scores_and_base(work: Work, made: Made) -> None:
    def key(tree: dict[str, Any] | None = None, **more: Any) -> str:
        inputs = {"target": "things", "description": "", **made.refs, **more}
        return export_classifier.recipe(work.settings.replace(tree or {}), inputs).key

    keys = [
        key(),
        key(verdict=made.verdict(0.5)),
        key(verdict=made.verdict(0.6)),
        key(scores=made.scores),
        key({"train": {"temperature": 10.0}}),
        key({"train": {"model": "demo:student"}}),
        key(target="others"),
    ]
    assert len(set(keys)) == len(keys)
