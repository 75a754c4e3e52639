"""Which index is the current one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.errors import MissingArtifactError
from mudg_core.index.version import current_version, load_version, promote
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore
from tests.core.storage.making import maker, recipe


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(StorageSettings(url=f"file://{tmp_path}/store", cache_dir=str(tmp_path / "cache")))


def build_index(store: ArtifactStore, cells: int) -> tuple[ArtifactRef, tuple[ArtifactRef, ...]]:
    shards = tuple(store.build(recipe("shard", settings={"n": n}), maker(b"s%d" % n)) for n in range(3))
    embeddings = tuple(
        store.build(recipe("embeddings", parents={"shard": shard}), maker(b"e%d" % n))
        for n, shard in enumerate(shards)
    )
    centroids = store.build(recipe("centroids", settings={"cells": cells}), maker(b"c"))
    parents = {"embeddings": embeddings, "centroids": centroids}
    return store.build(recipe("index", parents=parents), maker(b"i")), shards


def test_no_index_yet(store: ArtifactStore) -> None:
    with pytest.raises(MissingArtifactError, match="no index yet") as caught:
        current_version(store)
    assert "index build" in caught.value.fix


def test_a_version_knows_what_it_was_made_from(store: ArtifactStore) -> None:
    index, shards = build_index(store, 4)
    version = load_version(store, index)
    assert version.index == index
    assert version.shards == shards
    assert version.centroids.stage == "centroids"
    assert len(version.embeddings) == 3


def test_promotion_moves_current_and_is_repeatable(store: ArtifactStore) -> None:
    one, two = build_index(store, 4)[0], build_index(store, 8)[0]
    promote(store, one)
    promote(store, one)
    assert current_version(store).index == one
    promote(store, two)
    assert current_version(store).index == two
