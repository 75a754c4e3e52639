"""Training pairs: each text with its own nearest image, or an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index import training_data as module
from mudg_core.index.training_data import Pairs, check_aligned, image_sum, make_pairs
from mudg_core.index.vectors import normalised
from tests.core.index.making import Float32, Int64, Shard, modality_gap, shard_of, world

TEXTS = 60


def found_in(shards: list[Shard]) -> tuple[Float32, Int64, Float32]:
    """Texts, and their ten nearest rows with the cosines, by brute force."""
    images = normalised(np.concatenate([shard.images for shard in shards]))
    texts = normalised(shards[0].texts[:TEXTS])
    cosines = texts @ images.T
    near = np.argsort(-cosines, axis=1)[:, :10]
    rows = np.concatenate([shard.rows for shard in shards])
    return texts, rows[near], np.take_along_axis(cosines, near, axis=1)


def test_each_text_gets_its_nearest_image(tmp_path: Path) -> None:
    shards = world(tmp_path, 300, shards=3)
    texts, rows, cosines = found_in(shards)
    mean = np.ones(24, np.float32)
    made = make_pairs(texts, rows, cosines, shards, mean, seed=1)
    images = modality_gap(300)[0]
    assert made.images.tolist() == images[rows[:, 0]].astype(np.float16).tolist()
    assert made.neighbors.tolist() == rows.tolist() and made.cosines.tolist() == cosines.tolist()
    assert made.centring.image is mean
    assert made.centring.text == pytest.approx(texts.mean(axis=0), abs=1e-6)
    known = {row.tobytes() for row in images.astype(np.float16)}
    assert len(made.gallery) == TEXTS and {row.tobytes() for row in made.gallery} <= known
    assert len({row.tobytes() for row in made.gallery}) == TEXTS, "none twice"
    again, other = (make_pairs(texts, rows, cosines, shards, mean, seed) for seed in (1, 2))
    assert made.gallery.tobytes() == again.gallery.tobytes() != other.gallery.tobytes()


def test_round_trip(tmp_path: Path) -> None:
    shards = world(tmp_path / "shards", 100)
    made = make_pairs(*found_in(shards), shards, np.arange(24, dtype=np.float32), seed=1)
    made.write(tmp_path)
    found = Pairs.read(tmp_path)
    for name in ("images", "neighbors", "cosines", "gallery"):
        assert getattr(found, name).tobytes() == getattr(made, name).tobytes()
    assert found.centring.image.tolist() == made.centring.image.tolist()
    assert found.centring.text.tolist() == made.centring.text.tolist()


@pytest.mark.parametrize("block", [7, 65_536])
def test_two_images_swapped_are_noticed(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    images, texts = modality_gap(TEXTS)
    cosines = np.einsum("ij,ij->i", texts, images)
    half = images.astype(np.float16)
    check_aligned(texts, half, cosines)
    check_aligned(texts, (3 * images).astype(np.float16), cosines)
    half[[20, 41]] = half[[41, 20]]
    with pytest.raises(DataError, match=r"training pairs have another cosine than the search found"):
        check_aligned(texts, half, cosines)


def test_neighbours_of_other_texts_are_refused(tmp_path: Path) -> None:
    shards = world(tmp_path, 200)
    texts, rows, cosines = found_in(shards)
    shifted = np.roll(rows, 1, axis=0)
    with pytest.raises(DataError, match="another cosine than the search found"):
        make_pairs(texts, shifted, cosines, shards, np.zeros(24, np.float32), seed=0)


def test_f53_a_text_without_neighbour_is_refused(tmp_path: Path) -> None:
    shards = world(tmp_path, 200)
    texts, rows, cosines = found_in(shards)
    rows[[3, 17], 0] = -1
    with pytest.raises(DataError, match=r"texts \[3, 17\] have no nearest image"):
        make_pairs(texts, rows, cosines, shards, np.zeros(24, np.float32), seed=0)


def test_a_neighbour_that_is_in_no_shard(tmp_path: Path) -> None:
    shards = world(tmp_path, 200, shards=2)
    texts, rows, cosines = found_in(shards)
    rows[5, 0] = 999
    with pytest.raises(DataError, match=r"rows \[999\] are in no shard"):
        make_pairs(texts, rows, cosines, shards, np.zeros(24, np.float32), seed=0)


def test_f42_f43_gallery_leaves_out_what_cannot_be_used(tmp_path: Path) -> None:
    images, texts = modality_gap(150)
    images[100:120, 0], images[120:140] = np.nan, 0
    shard = shard_of(tmp_path, np.arange(150), images, texts)
    near, cosines = np.arange(100)[:, None], np.einsum("ij,ij->i", texts, images)[:100, None]
    every = np.tile(near, (1, 10)), np.tile(cosines, (1, 10))
    made = make_pairs(normalised(shard.texts[:100]), *every, [shard], np.zeros(24, np.float32), seed=0)
    assert 50 < len(made.gallery) < 100
    assert np.isfinite(made.gallery).all() and made.gallery.any(axis=1).all()


@pytest.mark.parametrize("block", [7, 65_536])
def test_image_sums_are_exact_over_any_split(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, texts = modality_gap(500)
    images *= np.linspace(0.5, 2, 500, dtype=np.float32)[:, None]
    images[::3, :12] *= 2e-7  # small beside large: plain sums would depend on their order
    images[5, 0], images[300] = np.nan, 0
    whole, many = image_sum(shard_of(tmp_path / "whole", np.arange(500), images, texts))
    assert many == 498
    monkeypatch.setattr(module, "BLOCK", block)
    good = normalised(np.delete(images, [5, 300], axis=0).astype(np.float16))
    assert whole == pytest.approx(good.sum(axis=0, dtype=np.float64), abs=1e-4)
    for split in ([250], [1, 6, 300], [499], [100, 100]):
        parts = np.split(np.arange(500), split)
        shards = [
            shard_of(tmp_path / f"{split}-{n}", part, images[part], texts[part])
            for n, part in enumerate(parts)
        ]
        sums = [image_sum(shard) for shard in shards][::-1]
        assert sum(total for total, _ in sums).tobytes() == whole.tobytes()  # type: ignore[union-attr]
        assert sum(rows for _, rows in sums) == many
