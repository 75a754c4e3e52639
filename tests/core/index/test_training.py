"""What each variant trains on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index import kmeans
from mudg_core.index.coarse import Centring
from mudg_core.index.kmeans import LocalPool
from mudg_core.index.training_data import Counts, Pairs, Samples, TrainingPairs, held_out
from mudg_core.index.vectors import normalised
from tests.core.index.making import modality_gap, sphere

TEXTS, LEFT = 400, 380


def made(variant: str, texts: int = TEXTS, gallery: int = TEXTS - 10) -> TrainingPairs:
    """Row i of images and texts is pair i; tuning and report captions lie behind the training ones."""
    images, captions = (side.astype(np.float16) for side in modality_gap(texts))
    counts = Counts(texts, 30, 20, 0)
    samples = Samples(
        np.concatenate([captions, sphere(50, 24, seed=9).astype(np.float16)]), np.arange(texts + 50), counts
    )
    centring = Centring(images.mean(axis=0, dtype=np.float32), captions.mean(axis=0, dtype=np.float32))
    near = np.zeros((texts, 10), np.int64)
    random = sphere(gallery, 24, seed=4).astype(np.float16)
    return TrainingPairs(variant, Pairs(images, near, near.astype(np.float32), random, centring), samples)


@pytest.mark.parametrize("variant", ["kmeans", "paired", "centred"])
@pytest.mark.parametrize("most", [1, 2, 3, 4, 7, 12, 13, 100])
def test_shards_cover_all_rows_once_and_begin_at_tiles(
    variant: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kmeans, "TILE", 32)
    pairs = made(variant)
    rows = 390 if variant == "kmeans" else LEFT
    shards = pairs.shards(most)
    assert 1 <= len(shards) <= most and (len(shards) == most or most > 12)
    assert np.concatenate([np.arange(10**6)[part] for part in shards]).tolist() == list(range(rows))
    assert all(part.start % 32 == 0 and part.stop <= rows for part in shards)
    sizes = [part.stop - part.start for part in shards]
    assert max(sizes) <= 32 * -(-13 // most), "spread evenly"


def test_plain_kmeans_learns_from_images_as_the_corpus_has_them() -> None:
    pairs = made("kmeans")
    shard = pairs.load(slice(32, 96))
    gallery = normalised(pairs.pairs.gallery[32:96])
    assert shard.images == pytest.approx(gallery, abs=1e-6)
    assert shard.targets == pytest.approx(gallery, abs=1e-6)
    assert not pairs.centring.image.any() and not pairs.centring.text.any()


@pytest.mark.parametrize("gallery", [100, 390, 700])
def test_plain_kmeans_is_measured_on_pairs(gallery: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 16th pair that the others train on, however many images it trains on and shards there are."""
    monkeypatch.setattr(kmeans, "TILE", 32)
    pairs = made("kmeans", gallery=gallery)
    rows = range(0, min(gallery, LEFT), 16)
    for most in (1, 3, 50):
        samples = [pairs.load(part).sample for part in pairs.shards(most)]
        images, texts = (np.concatenate(side) for side in zip(*(s for s in samples if s), strict=True))
        assert images == pytest.approx(normalised(pairs.pairs.images[rows]), abs=1e-6)
        assert texts == pytest.approx(normalised(pairs.samples.vectors[rows]), abs=1e-6)
    assert made("paired").load(slice(32, 96)).sample is None, "its targets are texts"


def test_paired_learns_from_texts() -> None:
    pairs = made("paired")
    shard = pairs.load(slice(32, 96))
    assert shard.images == pytest.approx(normalised(pairs.pairs.images[32:96]), abs=1e-6)
    assert shard.targets == pytest.approx(normalised(pairs.samples.vectors[32:96]), abs=1e-6)
    assert not pairs.centring.image.any() and not pairs.centring.text.any()


def test_centred_takes_both_means_away() -> None:
    pairs = made("centred")
    shard, means = pairs.load(slice(32, 96)), pairs.pairs.centring
    images, texts = normalised(pairs.pairs.images[32:96]), normalised(pairs.samples.vectors[32:96])
    assert shard.images == pytest.approx(normalised(images - means.image), abs=1e-6)
    assert shard.targets == pytest.approx(normalised(texts - means.text), abs=1e-6)
    assert pairs.centring is means


@pytest.mark.parametrize("variant", ["paired", "centred"])
def test_held_out_texts_are_not_used(variant: str) -> None:
    """NaN in them would be an error if anybody looked."""
    pairs = made(variant)
    assert TEXTS - held_out(TEXTS) == LEFT
    pairs.pairs.images[LEFT:] = np.nan
    pairs.samples.vectors[LEFT:] = np.nan
    used = [pairs.load(part) for part in pairs.shards(3)]
    assert sum(len(shard.images) for shard in used) == LEFT
    for seed in range(20):
        assert np.isfinite(pairs.start(40, seed).centroids).all()


@pytest.mark.parametrize("variant", ["kmeans", "paired", "centred"])
def test_the_start_is_images_as_they_are_trained_on(variant: str) -> None:
    pairs = made(variant)
    start = pairs.start(9, seed=3)
    images = np.concatenate([pairs.load(part).images for part in pairs.shards(1)])
    assert start.history == () and start.centroids.shape == (9, 24)
    assert {row.tobytes() for row in start.centroids} <= {row.tobytes() for row in images}
    assert pairs.start(9, 3).centroids.tobytes() == start.centroids.tobytes()
    assert pairs.start(9, 4).centroids.tobytes() != start.centroids.tobytes()


def test_f48_more_cells_than_pairs() -> None:
    with pytest.raises(DataError, match="cells is 381, but there are only 380"):
        made("paired").start(381, 0)


@pytest.mark.parametrize("variant", ["kmeans", "paired", "centred"])
def test_however_many_shards_the_same_bytes(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmeans, "TILE", 32)
    pairs, found = made(variant), set()
    for most in (1, 2, 5, 50):
        pool = LocalPool([pairs.load(part) for part in pairs.shards(most)])
        trained = kmeans.train(pool, pairs.start(12, 0), 4)
        found.add((trained.centroids.tobytes(), trained.history))
    assert len(found) == 1


def test_pairs_of_the_first_texts_only() -> None:
    """While an index is bootstrapped there are pairs for some of the training texts."""
    whole = made("paired")
    few = Pairs(
        whole.pairs.images[:40],
        whole.pairs.neighbors[:40],
        whole.pairs.cosines[:40],
        whole.pairs.gallery[:40],
        whole.pairs.centring,
    )
    guide = TrainingPairs("paired", few, whole.samples)
    (part,) = guide.shards(1)
    assert part == slice(0, 38)
    assert guide.load(part).targets == pytest.approx(normalised(whole.samples.vectors[:38]), abs=1e-6)


def test_from_disk_the_same(tmp_path: Path) -> None:
    pairs = made("centred")
    pairs.pairs.write(tmp_path)
    pairs.samples.write(tmp_path)
    again = TrainingPairs("centred", Pairs.read(tmp_path), Samples.read(tmp_path))
    one, two = pairs.load(slice(32, 64)), again.load(slice(32, 64))
    assert one.images.tobytes() == two.images.tobytes() and one.targets.tobytes() == two.targets.tobytes()
