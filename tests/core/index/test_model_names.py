"""The model of an index is known by name to whoever comes after the first build."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.encode import weights
from mudg_core.errors import DataError, InputError, ModelError
from mudg_core.index import model_names
from mudg_core.index.model_names import (
    DRAWN,
    ask_for_model,
    check_named_model,
    model_of,
    remember_model,
    resolved_model,
)
from mudg_core.index.version import promote
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore
from tasks.corpus import draw_shard
from tests.core.index.test_open_index import build

OTHER, HUB, OTHER_HUB = "ab" * 32, "ViT-B-32/laion2b_s34b_b79k", "ViT-B-16/openai"


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(
        Settings().storage.model_copy(
            update={"url": f"file://{tmp_path}/store", "cache_dir": f"{tmp_path}/cache"}
        )
    )


@pytest.fixture
def digests(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of models that are not on this machine; asking for any other fails the test."""
    known = {"demo:index": "01" * 32, "demo:student": "02" * 32}
    monkeypatch.setattr(model_names, "weights_digest", lambda name: known[name])
    return known


def test_a_name_is_noted_and_found_again(store: ArtifactStore, digests: dict[str, str]) -> None:
    digests |= {HUB: OTHER, "local-dir:/copy": OTHER}
    version = build(store, {"encode.model": OTHER})
    assert (resolved_model(store, "index"), resolved_model(store, HUB)) == ("demo:index", HUB)
    promote(store, version.index)
    assert model_of(store, version) is None and resolved_model(store, "index") == "index"
    for name in (HUB, "local-dir:/copy", "local-dir:/copy"):
        remember_model(store, name)
        assert resolved_model(store, "index") == model_of(store, version) == name


def test_an_index_of_an_earlier_release_with_a_model_that_comes_with_mudg(store: ArtifactStore) -> None:
    version = build(store, {"encode.model": weights.weights_digest("demo:student")})
    promote(store, version.index)
    assert resolved_model(store, "index") == "demo:student"


def test_f51_two_models_of_the_hub_are_told_apart_before_anything_is_read(
    store: ArtifactStore, digests: dict[str, str]
) -> None:
    version = build(store, {"encode.model": OTHER})
    digests[HUB] = OTHER
    remember_model(store, HUB)
    del digests[HUB]
    check_named_model(store, version, HUB)
    with pytest.raises(DataError, match="another CLIP model") as caught:
        check_named_model(store, version, OTHER_HUB)
    assert HUB in caught.value.what and OTHER_HUB in caught.value.what and OTHER_HUB in caught.value.fix


def test_f51_the_same_weights_under_another_name_are_the_same_model(
    store: ArtifactStore, digests: dict[str, str]
) -> None:
    version = build(store, {"encode.model": OTHER})
    digests |= {HUB: OTHER, "local-dir:/copy": OTHER, "local-dir:/other": "cd" * 32}
    remember_model(store, HUB)
    check_named_model(store, version, "local-dir:/copy")
    with pytest.raises(DataError, match=HUB):
        check_named_model(store, version, "local-dir:/other")


def test_embeddings_of_an_unknown_model_are_taken_as_they_are(store: ArtifactStore) -> None:
    check_named_model(store, build(store), "demo:index")


def test_the_first_build_asks(store: ArtifactStore) -> None:
    with pytest.raises(InputError, match="which model") as caught:
        ask_for_model(store, "index")
    assert "--set encode.model=" in caught.value.fix
    ask_for_model(store, HUB)
    promote(store, build(store).index)
    ask_for_model(store, "index")


def test_the_first_build_of_own_images_asks_beside_an_index_of_drawings(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the toy of the demo would embed them without a word."""
    version = build(store)
    promote(store, version.index)
    assert draw_shard.name == DRAWN
    monkeypatch.setattr(model_names, "DRAWN", version.shards[0].stage)
    with pytest.raises(InputError, match="which model"):
        ask_for_model(store, "index")


def test_a_model_that_is_not_known_by_name_is_an_error_that_says_so() -> None:
    with pytest.raises(ModelError, match="earlier release"):
        weights.locate("index")
    assert weights.path_in("index") is None
