"""What a build takes over from the version that is current."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from flows.takedowns import already_removed
from mudg_core.index.version import MANY, ONE, REMOVED, IndexVersion, load_version
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tasks.run import Run
from tests.support.training_sets import make, store_at


class Kept:
    """A run, of which only the store is asked."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store = store


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return store_at(tmp_path)


def shard(store: ArtifactStore, stage: str, first_row: int, rows: int = 10, **how: Any) -> ArtifactRef:
    settings = {"inputs": {"first_row": first_row, "rows": rows}} | how.pop("settings", {})
    return make(store, stage, settings, {"x": {}}, {"first_row": first_row, "rows": rows}, **how)


def embedded(store: ArtifactStore, shards: list[ArtifactRef], model: str = "a") -> list[ArtifactRef]:
    return [make(store, "embedding-shard", {"model": model}, {"x": {}}, shard=ref) for ref in shards]


def version(store: ArtifactStore, shards: list[ArtifactRef], removed: list[int]) -> IndexVersion:
    def write(folder: Path) -> Facts:
        np.save(folder / REMOVED, np.array(removed, np.int64))
        return Facts({"variant": "paired", "training_shards": 1})

    parents: dict[str, Any] = {role: make(store, role, {}, {"x": {}}) for role in ONE}
    parents |= {role: (make(store, role, {}, {"x": {}}),) for role in MANY}
    parents["embeddings"] = tuple(embedded(store, shards))
    return load_version(store, store.build(Recipe(stage="index", algorithm=1, parents=parents), write))


def kept(store: ArtifactStore, current: IndexVersion | None, shards: list[ArtifactRef]) -> list[int]:
    return already_removed(cast(Run, Kept(store)), current, embedded(store, shards, "b"))


def test_removed_rows_stay_out_of_shards_that_are_still_there(store: ArtifactStore) -> None:
    """Whatever model has embedded them; a number of another corpus is another image."""
    one, two, other = (shard(store, "source-shard", *at) for at in ((0,), (10,), (0, 20)))
    current = version(store, [one, two], [3, 10, 19])
    assert kept(store, current, [one, two]) == [3, 10, 19]
    assert kept(store, current, [two, other]) == [10, 19]
    assert kept(store, current, [other]) == []
    assert kept(store, None, [one]) == []
    assert kept(store, version(store, [one], []), [one]) == []


def test_a_shard_that_was_downloaded_again_has_the_rows_that_it_had(store: ArtifactStore) -> None:
    links = shard(store, "source-shard", 0)
    small, large = (
        shard(store, "downloaded-shard", 0, settings={"download.image_size": size}, shard=links)
        for size in (256, 512)
    )
    assert kept(store, version(store, [small], [3]), [large]) == [3]


def test_the_demo_world_has_the_same_rows_however_it_is_cut(store: ArtifactStore) -> None:
    short, long = (shard(store, "corpus-shard", 0, n, settings={"corpus.seed": 0}) for n in (10, 20))
    elsewhere = shard(store, "corpus-shard", 0, settings={"corpus.seed": 1})
    assert kept(store, version(store, [short], [3]), [long]) == [3]
    assert kept(store, version(store, [short], [3]), [elsewhere]) == []
