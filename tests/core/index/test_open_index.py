"""A version, opened from a store: what it finds is what was put in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index import ivf
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.neighbors import Neighbors
from mudg_core.index.part import Placement, assign_shard, placed_images
from mudg_core.index.recall import truth_of
from mudg_core.index.routing import Probing
from mudg_core.index.training_data import Counts, Samples
from mudg_core.index.vectors import normalised
from mudg_core.index.version import (
    COARSE,
    PART,
    IndexVersion,
    check_model,
    load_version,
    open_part,
    open_searcher,
)
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts
from tests.core.index.making import Shard, modality_gap, shard_of, sphere
from tests.core.storage.making import maker, recipe

ROWS, CELLS, MODEL, OTHER = 90, 4, "a" * 64, "b" * 64
FIRST = 500  # row 0 does not exist


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(StorageSettings(url=f"file://{tmp_path}/store", cache_dir=str(tmp_path / "cache")))


def saved(write: Callable[[Path], None], facts: dict[str, object]) -> Callable[[Path], Facts]:
    def make(folder: Path) -> Facts:
        write(folder)
        return Facts(facts)

    return make


def level() -> Coarse:
    none = np.zeros(24, np.float32)
    return Coarse.unrouted(Centring(none, none), sphere(CELLS, 24))


def build(
    store: ArtifactStore, weights: dict[str, str] | None = None, vectors: int = ROWS // 3
) -> IndexVersion:
    """Three shards, a part for each."""
    images, texts = modality_gap(ROWS)
    embeddings, parts = [], []
    for n, rows in enumerate(np.array_split(np.arange(ROWS), 3)):

        def embed(folder: Path, rows: np.ndarray = rows) -> None:
            shard_of(folder, rows + FIRST, images[rows], texts[rows])

        source = store.build(recipe("shard", settings={"n": n}), maker())
        made = recipe("embeddings", parents={"shard": source}, weights=weights or {})
        embeddings.append(store.build(made, saved(embed, {"rows": len(rows)})))

        def fill(folder: Path, ref: ArtifactRef = embeddings[-1]) -> None:
            shard = Shard.open(store.folder(ref))
            placed = Placement(shard.rows, assign_shard(level(), shard).cells)
            index = ivf.populate(ivf.blank("sq4", CELLS, normalised(images)), placed_images(placed, [shard]))
            ivf.write(index, folder / PART)

        parents = {"embedding": embeddings[-1]}
        facts: dict[str, object] = {"vectors": vectors, "dim": 24}
        parts.append(store.build(recipe("index-part", parents=parents), saved(fill, facts)))
    coarse = store.build(recipe("coarse"), saved(lambda folder: level().save(folder / COARSE), {}))
    others = {role: store.build(recipe(role), maker()) for role in ("centroids", "samples")}
    many = {"parts": tuple(parts), "neighbors": (others["samples"],), "embeddings": tuple(embeddings)}
    made = recipe("index", parents={"coarse": coarse, **others, **many})
    facts = {"variant": "paired", "training_shards": 3}
    return load_version(store, store.build(made, saved(lambda folder: (folder / "x").touch(), facts)))


def test_an_opened_version_finds_what_was_put_in(store: ArtifactStore) -> None:
    searcher, (images, texts) = open_searcher(store, build(store)), modality_gap(ROWS)
    assert searcher.images == ROWS and not searcher.spilled and len(searcher.parts) == 3
    found = searcher.search(texts[:20], 5, Probing(CELLS), rerank=120)
    truth = np.argsort(-(texts[:20] @ normalised(images.astype(np.float16)).T), axis=1)[:, :5] + FIRST
    assert found.hits.rows.tolist() == truth.tolist()


def test_f53_more_is_asked_for_than_there_is(store: ArtifactStore) -> None:
    found = open_searcher(store, build(store)).search(modality_gap(ROWS)[1][:3], 200, Probing(CELLS), 200)
    assert (found.hits.rows[:, :ROWS] >= FIRST).all() and (found.hits.rows[:, ROWS:] == -1).all()


def test_f52_a_part_that_is_not_what_its_manifest_says(store: ArtifactStore) -> None:
    version = build(store, vectors=31)
    with pytest.raises(DataError, match="holds 30 x 24, its manifest says 31 x 24"):
        open_part(store, version.parts[0])


def test_f51_another_model_is_refused(store: ArtifactStore) -> None:
    version = build(store, {"encode": MODEL})
    check_model(store, version, MODEL)
    with pytest.raises(DataError, match="another CLIP model") as caught:
        check_model(store, version, OTHER)
    assert "encode.model" in caught.value.fix and str(version.index.key) in caught.value.where


def test_f51_embeddings_of_an_unknown_model_are_taken_as_they_are(store: ArtifactStore) -> None:
    check_model(store, build(store), OTHER)


def measured(rows: list[list[int]], kinds: Counts, origins: list[int]) -> tuple[Neighbors, Samples]:
    near = np.array(rows)
    samples = Samples(np.zeros((len(rows), 2), np.float16), np.array(origins), kinds)
    return Neighbors(near, np.zeros(near.shape, np.float32)), samples


def test_truth_of_texts_is_the_first_ten() -> None:
    near, samples = measured([list(range(n, n + 11)) for n in (0, 20, 40)], Counts(1, 1, 1, 0), [0, 20, 40])
    assert truth_of(near, samples, "tuning", []).tolist() == [list(range(20, 30))]
    assert truth_of(near, samples, "report", []).tolist() == [list(range(40, 50))]


def test_truth_of_an_image_is_not_itself() -> None:
    """It is its own nearest, unless it has a twin with a lower row."""
    lines = [[7, *range(20, 30)], [3, 8, *range(30, 39)], list(range(40, 51))]
    near, samples = measured(lines, Counts(0, 0, 0, 3), [7, 8, 9])
    assert truth_of(near, samples, "images", []).tolist() == [
        list(range(20, 30)),
        [3, *range(30, 39)],
        list(range(40, 50)),
    ]


def test_truth_skips_what_was_removed() -> None:
    near, samples = measured([[5, 1, 4, 2, 3, *range(10, 16)], [6, 5, *[-1] * 9]], Counts(0, 0, 2, 0), [5, 5])
    found = truth_of(near, samples, "report", [1, 2, 6])
    assert found.tolist() == [[5, 4, 3, *range(10, 16), -1], [5, *[-1] * 9]]
    near, samples = measured([[5, 1, 4, *range(10, 18)]], Counts(0, 0, 0, 1), [5])
    assert truth_of(near, samples, "images", [4]).tolist() == [[1, *range(10, 18), -1]]
