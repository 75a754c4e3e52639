"""A part of the index from its shards: nothing lost, nothing twice, and the same whenever it is made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index import ivf, part
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.neighbors import nearest
from mudg_core.index.part import (
    NOWHERE,
    CellsOfShard,
    Placement,
    Votes,
    assign_shard,
    placed_images,
    plan_part,
)
from mudg_core.index.training_data import Pairs
from mudg_core.index.vectors import normalised
from tests.core.index.making import Float32, Int64, Shard, modality_gap, shard_of, sphere, unit, world

CELLS = 6
NOBODY = np.zeros(0, np.int64)


def level() -> Coarse:
    images, texts = modality_gap(300)
    centring = Centring(images.mean(axis=0), texts.mean(axis=0))
    return Coarse.unrouted(centring, unit(texts[:CELLS] - centring.text))


def placement(shard: Shard) -> Placement:
    found = assign_shard(level(), shard)
    good = found.cells != NOWHERE
    return Placement(found.rows[good], found.cells[good])


def pairs_of(cosines: Float32) -> Pairs:
    nothing = np.zeros((len(cosines), 24), np.float16)
    rows = np.zeros(cosines.shape, np.int64)
    return Pairs(nothing, rows, cosines, nothing, level().centring)


@pytest.mark.parametrize("tile", [16, 8192])
def test_a_shard_is_assigned_as_by_hand(tile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "TILE", tile)
    monkeypatch.setattr(part, "SOME", 1)
    (shard,), coarse = world(tmp_path, 100), level()
    found = assign_shard(coarse, shard)
    images = unit(normalised(shard.images) - coarse.centring.image)
    texts = unit(normalised(shard.texts) - coarse.centring.text)
    own = np.argmax(images @ coarse.centroids.T, axis=1)
    assert found.cells.tolist() == own.tolist() and found.rows.tolist() == list(range(100))
    assert found.refused.tolist() == []
    distance = np.mean(np.sum((images - coarse.centroids[own]) ** 2, axis=1))
    assert found.kmeans == pytest.approx(distance, rel=1e-5)
    wrong = np.mean(np.argmax(texts @ coarse.centroids.T, axis=1) != own)
    assert 0 < found.cross_modal == pytest.approx(wrong)


@pytest.mark.parametrize("tile", [8, 8192])
def test_f42_f43_rows_that_cannot_be_used_go_nowhere_and_are_listed(
    tile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "TILE", tile)
    monkeypatch.setattr(part, "SOME", 1)
    images, texts = modality_gap(100)
    rows = np.arange(100) * 7 + 1
    clean = assign_shard(level(), shard_of(tmp_path / "clean", rows, images, texts))
    images[3, 0], images[4, 5], images[8:16] = np.nan, np.inf, 0  # a whole tile of the small ones
    texts[50, 1], texts[99] = np.nan, 0  # an image whose caption cannot be used is still an image
    bad = [3, 4, *range(8, 16)]
    found = assign_shard(level(), shard_of(tmp_path / "bad", rows, images, texts))
    assert found.refused.tolist() == rows[bad].tolist()
    good = np.setdiff1d(np.arange(100), bad)
    assert found.cells[good].tolist() == clean.cells[good].tolist()
    assert np.isfinite([found.kmeans, found.cross_modal]).all()
    found.write(tmp_path)
    again = CellsOfShard.read(tmp_path)
    assert again.rows.tolist() == rows[good].tolist()
    assert again.cells.tolist() == clean.cells[good].tolist() and again.cells.dtype == np.int64


def test_f42_a_shard_without_any_usable_row(tmp_path: Path) -> None:
    images, texts = modality_gap(20)
    found = assign_shard(level(), shard_of(tmp_path, np.arange(20), images * np.nan, texts))
    assert found.refused.tolist() == list(range(20)) and (found.kmeans, found.cross_modal) == (0, 0)


def test_f44_a_shard_of_another_dimension(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, np.arange(9), sphere(9, 16), sphere(9, 16))
    with pytest.raises(DataError, match="dimension 16 for centroids of dimension 24") as caught:
        assign_shard(level(), shard)
    assert "model" in caught.value.fix


def test_f49_row_ids_twice_in_a_shard(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, np.array([4, 5, 5, 6]), *(side[:4] for side in modality_gap(4)))
    with pytest.raises(DataError, match="more than once in a shard"):
        assign_shard(level(), shard)


def test_f49_row_ids_in_two_shards() -> None:
    one, two = (Placement(np.array(rows), np.array([0, 1])) for rows in ([4, 5], [6, 4]))
    with pytest.raises(DataError, match="share row ids"):
        plan_part([one, two], None, 0.5, NOBODY)


def test_removed_rows_are_absent_and_vote_for_nobody() -> None:
    home = Placement(np.arange(10), np.zeros(10, np.int64))
    votes = Votes(np.array([[2, 3, 4]]), np.array([1]), np.ones(1, np.float32))
    removed = np.array([3, 999])
    found = plan_part([home], votes, 1.0, removed)
    assert sorted(found.rows.tolist()) == [0, 1, 2, 2, 4, 4, 5, 6, 7, 8, 9]
    assert plan_part([home], None, 1.0, removed).rows.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert plan_part([home], votes, 1.0, np.arange(10)).rows.tolist() == []


def test_only_neighbours_as_near_as_a_texts_tenth_vote() -> None:
    cosines = np.tile(np.linspace(0.9, 0.3, 10, dtype=np.float32), (2, 1))
    cosines[1] -= 0.25
    one = np.array([[11, 12, 13], [14, 15, -1]]), np.array([[0.95, 0.3, 0.29], [0.04, 0.05, -np.inf]], "f4")
    two = np.array([[21, 22, 23], [24, 25, 26]]), np.array([[0.1, 0.1, 0.1], [0.5, 0.4, 0.3]], "f4")
    cosines[:, 9] = 0.3, 0.05
    found = Votes.of(pairs_of(cosines), [one, two], np.array([3, 4]), np.ones(2, np.float32))
    assert found.neighbors.tolist() == [[11, 12, -1, -1, -1, -1], [-1, 15, -1, 24, 25, 26]]
    assert found.first.tolist() == [3, 4]


def test_blocks_hold_every_placed_vector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "TILE", 7)
    shards = world(tmp_path, 60, shards=3)
    home = plan_part([placement(shard) for shard in shards], None, 0.0, np.array([10]))
    placed = Placement(np.append(home.rows, [55, 2, 2]), np.append(home.cells, [0, 1, 2]))
    images = normalised(modality_gap(60)[0].astype(np.float16))
    seen = []
    for rows, cells, vectors in placed_images(placed, shards):
        assert len(rows) <= 7
        assert vectors.tolist() == images[rows].tolist()
        seen += list(zip(rows.tolist(), cells.tolist(), strict=True))
    assert sorted(seen) == sorted(zip(placed.rows.tolist(), placed.cells.tolist(), strict=True))


def test_blocks_of_a_shard_whose_rows_are_in_any_order(tmp_path: Path) -> None:
    images, texts = modality_gap(30)
    rows = np.random.default_rng(0).permutation(30)
    shard = shard_of(tmp_path, rows, images, texts)
    found = list(placed_images(placement(shard), [shard]))
    assert sorted(np.concatenate([block[0] for block in found]).tolist()) == list(range(30))
    for chosen, _, vectors in found:
        assert vectors == pytest.approx(images[np.argsort(rows)][chosen], abs=2e-3)


class Corpus:
    """Three shards, and training texts that vote for their images."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shards = folder, world(folder, 240, shards=3)
        self.texts = normalised(modality_gap(240)[1])
        self.near = [nearest(self.texts, shard.images, shard.rows, 10) for shard in self.shards]
        ivf.write(ivf.blank("sq4", CELLS, sphere(300, 24)), folder / "blank")
        merged = self.near[0].merge(self.near[1])  # the third shard came after training
        self.pairs = pairs_of(merged.cosines)

    def build(self, *numbers: int) -> bytes:
        """The part over these shards, as `tasks.index.populate` makes it."""
        shards = [self.shards[n] for n in numbers]
        found = [(self.near[n].rows, self.near[n].cosines) for n in numbers]
        first: Int64 = np.arange(240) % CELLS
        votes = Votes.of(self.pairs, found, first, np.linspace(0.2, 0.9, 240, dtype=np.float32))
        placed = plan_part([placement(shard) for shard in shards], votes, 0.2, np.array([5]))
        assert len(placed.rows) > sum(len(shard.rows) for shard in shards), "some were spilled"
        index = ivf.populate(ivf.load(self.folder / "blank", rows=0, dim=24), placed_images(placed, shards))
        assert index.ntotal == len(placed.rows)
        ivf.write(index, self.folder / "part")
        return (self.folder / "part").read_bytes()


def test_f55_a_part_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    early, late = Corpus(tmp_path / "early"), Corpus(tmp_path / "late")
    one, other = early.build(0, 1), early.build(2)
    assert (late.build(2), late.build(0, 1)) == (other, one)
    assert early.build(0) != one
