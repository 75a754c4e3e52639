"""Nearest images through an index: all of them if all is read, most if a tenth is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.index import kmeans, neighbors, vectors
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.neighbors import nearest, nearest_through
from mudg_core.index.vectors import normalised
from tests.core.index.making import Shard, modality_gap, shard_of

ROWS, TEXTS, KEEP = 2000, 300, 11


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Shard:
    images, texts = modality_gap(ROWS)
    images[17, 3], images[40] = np.nan, 0
    return shard_of(tmp_path_factory.mktemp("shard"), np.arange(ROWS) + 5000, images, texts)


@pytest.fixture(scope="module")
def guide(shard: Shard) -> Coarse:
    """Centred centroids, trained on a tenth of the texts with their nearest images."""
    images, texts = modality_gap(ROWS)
    near = np.argmax(texts[:200] @ images.T, axis=1)
    centring = Centring(images.mean(axis=0), texts.mean(axis=0))
    pairs = centring.images(images[near]), centring.texts(texts[:200])
    return Coarse.unrouted(centring, kmeans.cluster(*pairs, cells=40, iterations=8, seed=0).centroids)


def test_reading_all_cells_is_exact(shard: Shard, guide: Coarse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "ADDED", 64)
    monkeypatch.setattr(vectors, "BLOCK_BYTES", 64 << 10)
    texts = normalised(shard.texts[:TEXTS])
    found = nearest_through(guide, texts, shard, KEEP, 1.0)
    exact = nearest(texts, shard.images, shard.rows, KEEP)
    assert found.rows.tolist() == exact.rows.tolist()
    assert found.cosines == pytest.approx(exact.cosines, abs=1e-5)
    assert not np.isin(found.rows, [5017, 5040]).any()


def test_a_tenth_of_the_cells_finds_most(shard: Shard, guide: Coarse) -> None:
    texts = normalised(shard.texts[-TEXTS:])
    found = nearest_through(guide, texts, shard, KEEP, 0.1)
    exact = nearest(texts, shard.images, shard.rows, KEEP)
    assert found.rows.shape == exact.rows.shape
    first = np.mean(found.rows[:, 0] == exact.rows[:, 0])
    assert 0.6 < first < 1, first
    assert (found.cosines <= exact.cosines + 1e-5).all()
    assert found.rows.dtype == np.int64


def test_no_texts_and_one_cell(shard: Shard, guide: Coarse) -> None:
    assert nearest_through(guide, normalised(shard.texts[:0]), shard, KEEP, 0.5).rows.shape == (0, KEEP)
    found = nearest_through(guide, normalised(shard.texts[:20]), shard, KEEP, 0.0)
    assert (found.rows[:, 0] >= 0).all(), "a share of nothing still reads one cell"


def test_f53_texts_whose_cells_hold_too_little_end_in_minus_one(tmp_path: Path, guide: Coarse) -> None:
    images, texts = modality_gap(5)
    few = shard_of(tmp_path, np.arange(5), images, texts)
    found = nearest_through(guide, texts, few, KEEP, 1.0)
    assert (found.rows[:, :5] >= 0).all() and (found.rows[:, 5:] == -1).all()
    exact = nearest(texts, few.images, few.rows, KEEP)
    assert found.merge(exact).rows.shape == (5, KEEP)
    assert np.isneginf(found.cosines[:, 5:]).all(), "as exact neighbours have it, so that both merge"
