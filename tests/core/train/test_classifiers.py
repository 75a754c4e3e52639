"""Finished classifiers: found by name or key, and copied out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mudg_core.errors import InputError, MissingArtifactError
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.train.classifiers import copy_out, find_classifier
from tests.support.training_sets import make, store_at


def classifier(store: ArtifactStore, target: str, number: int = 0) -> ArtifactRef:
    settings = {"inputs": {"target": target, "n": number}}
    return make(store, "classifier", settings, {"classes.json": {"n": number}}, {"classes": 2})


def test_found_by_target_and_by_key(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    pets, cars = classifier(store, "pets"), classifier(store, "cars")
    assert find_classifier(store, "pets") == pets
    assert find_classifier(store, f"classifier/{cars.key[:10]}") == cars


def test_of_several_the_latest_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_at(tmp_path)
    times = iter(f"2026-01-0{day}T00:00:00+00:00" for day in (2, 3, 1))
    real = ArtifactStore._make

    def dated(self: ArtifactStore, *arguments: object) -> object:
        manifest = real(self, *arguments)  # type: ignore[arg-type]
        facts = manifest.circumstances.model_copy(update={"created": next(times)})
        return manifest.model_copy(update={"circumstances": facts})

    monkeypatch.setattr(ArtifactStore, "_make", dated)
    made = [classifier(store, "pets", number) for number in range(3)]
    assert find_classifier(store, "pets") == made[1]


@pytest.mark.parametrize("name", ["dogs", "classifier/ffff", ""])
def test_what_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    store = store_at(tmp_path)
    classifier(store, "pets")
    with pytest.raises(MissingArtifactError):
        find_classifier(store, name)


def test_another_artifact_is_no_classifier(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    index = make(store, "index", {}, {"x": {}})
    with pytest.raises(InputError, match="no classifier"):
        find_classifier(store, f"index/{index.key}")


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
