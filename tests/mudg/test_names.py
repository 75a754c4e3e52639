"""What people call things: the same names in every command that takes one."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from mudg.names import did_you_mean, find
from mudg_core.errors import InputError, MissingArtifactError
from mudg_core.settings import Settings, StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore
from tests.flows.test_kept_store import ARCHIVE
from tests.support.places import Place
from tests.support.training_sets import make, store_at


def classifier(store: ArtifactStore, target: str, number: int = 0) -> ArtifactRef:
    settings = {"inputs": {"target": target, "n": number}}
    return make(store, "classifier", settings, {"classes.json": {"n": number}}, {"classes": 2})


def test_by_target_and_by_key(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    pets, cars = classifier(store, "pets"), classifier(store, "cars")
    assert find(store, "pets") == find(store, "pets", "classifier") == pets
    assert find(store, f"classifier/{cars.key[:10]}", "classifier") == cars
    assert find(store, cars.key[:10], "classifier") == cars


def test_of_several_the_latest_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_at(tmp_path)
    times = iter(f"2026-01-0{day}T00:00:00+00:00" for day in (2, 3, 1))
    monkeypatch.setattr("mudg_core.storage.build_info.now", lambda: next(times))
    made = [classifier(store, "pets", number) for number in range(3)]
    assert find(store, "pets") == made[1]


@pytest.mark.parametrize("name", ["dogs", "classifier/ffff", "ffff", ""])
def test_what_is_not_there_is_an_error(tmp_path: Path, name: str) -> None:
    store = store_at(tmp_path)
    classifier(store, "pets")
    with pytest.raises(MissingArtifactError):
        find(store, name, "classifier")


def test_another_artifact_is_no_classifier(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    index = make(store, "index", {}, {"x": {}})
    with pytest.raises(InputError, match="is not a classifier"):
        find(store, f"index/{index.key}", "classifier")


def test_likely_names() -> None:
    assert did_you_mean("Animls", ["animals", "vehicles"]) == "did you mean animals?"
    assert did_you_mean("xyz", ["b", "a"]) == "names are a, b"
    assert did_you_mean("xyz", []) == ""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return Place(folder)


@pytest.mark.parametrize("kind", ["classifier", "dataset", "index", "model", "queries"])
def test_a_target_stands_for_what_its_classifier_was_made_from(kept: Place, kind: str) -> None:
    store = ArtifactStore(kept_settings(kept))
    ref = find(store, "animals", kind)
    assert ref.stage == kind
    assert find(store, f"classifier/{find(store, 'animals').key}", kind) == ref
    assert find(store, ref.key[:8], kind) == find(store, f"{kind}/{ref.key[:8]}") == ref


def test_the_current_index_has_two_names(kept: Place) -> None:
    store = ArtifactStore(kept_settings(kept))
    assert find(store, "current") == find(store, "index-current", "index") == find(store, "animals", "index")


def kept_settings(kept: Place) -> StorageSettings:
    url = {"url": f"file://{kept.folder / '.mudg'}", "cache_dir": str(kept.folder / ".mudg/cache")}
    return Settings().replace({"storage": url}).storage


TAKE_A_NAME = {
    "show": ["show", "NAME"],
    "lineage": ["lineage", "NAME"],
    "dataset export": ["dataset", "export", "NAME", "out", "--to", "imagefolder"],
    "model export": ["model", "export", "NAME", "out"],
    "predict": ["predict", "NAME", "."],
    "evaluate": ["evaluate", "NAME", "demo:animals"],
    "index promote": ["index", "promote", "NAME"],
    "index recall": ["index", "recall", "NAME"],
}


@pytest.mark.parametrize("words", TAKE_A_NAME.values(), ids=TAKE_A_NAME)
def test_every_command_says_which_name_was_meant(kept: Place, words: list[str]) -> None:
    wrong = replace(kept).run(*("animls" if word == "NAME" else word for word in words), ends=3)
    assert wrong["error"] == "MissingArtifactError" and "did you mean animals?" in wrong["fix"]


@pytest.mark.parametrize("name", ["animals", "current"])
@pytest.mark.parametrize("command", ["show", "lineage", "index promote", "index recall"])
def test_names_work_in_commands_that_read_the_store(kept: Place, command: str, name: str) -> None:
    result = kept.run(*(name if word == "NAME" else word for word in TAKE_A_NAME[command]))
    assert "error" not in result
