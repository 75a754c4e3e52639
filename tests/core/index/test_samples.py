"""Samples: what trains, what chooses and what measures never overlap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index.training_data import Counts, Samples, draw, sample_lines
from tests.core.index.making import modality_gap, shard_of, world

KINDS = ("training", "tuning", "report", "images")
WANTED = Counts(training=100, tuning=20, report=15, images=12)


def test_kinds_lie_one_after_the_other() -> None:
    counts = Counts(5, 3, 2, 4)
    assert [counts.part(kind) for kind in KINDS] == [slice(0, 5), slice(5, 8), slice(8, 10), slice(10, 14)]


def test_kinds_do_not_overlap_and_are_what_their_rows_say(tmp_path: Path) -> None:
    shards = world(tmp_path, 300, shards=3)
    found = draw(shards, WANTED, seed=5)
    assert found.counts == WANTED and len(found.rows) == len(found.vectors) == 147
    captions = found.rows[: found.counts.part("images").start]
    assert len(set(captions.tolist())) == 135
    images, texts = modality_gap(300)
    for kind in KINDS:
        rows = found.rows[found.counts.part(kind)]
        side = images if kind == "images" else texts
        assert found.of(kind) == pytest.approx(side[rows], abs=2e-3)
        assert found.of(kind).dtype == np.float32
        assert np.linalg.norm(found.of(kind), axis=1) == pytest.approx(1, abs=1e-6)
        assert len(set(rows.tolist())) == len(rows)
        assert {row // 100 for row in rows.tolist()} == {0, 1, 2}, "from all shards"
    assert found.vectors.shape == (147, 24)
    assert sorted(captions.tolist()) != captions.tolist(), "in random order"


def test_seeded(tmp_path: Path) -> None:
    shards = world(tmp_path, 300, shards=2)
    one, two, other = (draw(shards, WANTED, seed) for seed in (1, 1, 2))
    assert one.vectors.tobytes() == two.vectors.tobytes() and one.rows.tolist() == two.rows.tolist()
    assert one.rows.tolist() != other.rows.tolist()


def test_of_a_small_corpus_measuring_takes_a_tenth_each(tmp_path: Path) -> None:
    found = draw(world(tmp_path, 50), Counts(10_000, 2000, 1000, 500), seed=0)
    assert found.counts == Counts(training=40, tuning=5, report=5, images=5)


def test_f42_f43_rows_that_cannot_be_used_are_left_out(tmp_path: Path) -> None:
    images, texts = modality_gap(200)
    texts[:40, 3], texts[40:50, 2], texts[50:60] = np.nan, np.inf, 0
    images[100:120, 0], images[120:130] = np.nan, 0
    found = draw([shard_of(tmp_path, np.arange(200), images, texts)], Counts(10_000, 20, 20, 200), seed=0)
    captions, pictures = np.split(found.rows, [found.counts.part("images").start])
    assert sorted(captions.tolist()) == list(range(60, 200))
    assert found.counts.training == 100
    assert not set(pictures.tolist()) & set(range(100, 130))
    assert np.isfinite(found.vectors).all() and len(found.vectors) == len(found.rows)


def test_f47_too_few_captions(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 usable captions are too few"):
        draw(world(tmp_path, 3), WANTED, seed=0)


def test_round_trip(tmp_path: Path) -> None:
    found = draw(world(tmp_path / "shards", 300), WANTED, seed=5)
    found.write(tmp_path)
    again = Samples.read(tmp_path)
    assert again.vectors.tobytes() == found.vectors.tobytes() and again.vectors.dtype == np.float16
    assert again.rows.tolist() == found.rows.tolist() and again.counts == found.counts


@pytest.mark.parametrize("most", [0, 1, 7, 29, 30, 1000])
def test_sample_lines(most: int) -> None:
    sizes = [10, 0, 15, 5]
    parts = sample_lines(sizes, most, seed=3)
    assert len(parts) == len(sizes)
    assert sum(len(part) for part in parts) == min(most, 30)
    for part, size in zip(parts, sizes, strict=True):
        assert all(0 <= line < size for line in part)
        assert sorted(set(part.tolist())) == part.tolist()


def test_sample_lines_same_seed_same_lines_and_every_line_has_its_chance() -> None:
    sizes = [10, 15, 5]
    again = [sample_lines(sizes, 12, seed=1) for _ in range(2)]
    assert [part.tolist() for part in again[0]] == [part.tolist() for part in again[1]]
    seen: set[tuple[int, int]] = set()
    for seed in range(60):
        chosen = sample_lines(sizes, 12, seed)
        seen |= {(shard, line) for shard, part in enumerate(chosen) for line in part.tolist()}
    assert seen == {(shard, line) for shard, size in enumerate(sizes) for line in range(size)}
