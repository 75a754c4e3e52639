"""Finished classifiers: found by name or key, and copied out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mudg_core.errors import InputError
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.train.classifiers import copy_out
from tests.support.training_sets import make, store_at


def classifier(store: ArtifactStore, target: str, number: int = 0) -> ArtifactRef:
    settings = {"inputs": {"target": target, "n": number}}
    return make(store, "classifier", settings, {"classes.json": {"n": number}}, {"classes": 2})


def test_a_copy_is_whole_and_says_what_it_is(tmp_path: Path) -> None:
    store, out = store_at(tmp_path), tmp_path / "out"
    ref = classifier(store, "pets")
    told = copy_out(store, ref, out)
    assert told["target"] == "pets" and told["classifier"] == f"classifier/{ref.key}" and told["classes"] == 2
    assert json.loads((out / "mudg.json").read_text()) == told
    assert json.loads((out / "classes.json").read_text()) == {"n": 0}
    assert str(tmp_path) not in (out / "mudg.json").read_text()
    with pytest.raises(InputError, match="not empty"):
        copy_out(store, ref, out)
    copy_out(store, ref, out, force=True)
    (out / "classes.json").write_text("{}")
    assert json.loads(store.file(ref, "classes.json").read_text()) == {"n": 0}  # a copy, not a link
