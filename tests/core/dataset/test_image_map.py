"""The class map: fair to every class, the same every time, and made of what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mudg_core.dataset import image_map
from mudg_core.dataset.image_map import ClassMap, draw_map, nearest_to_prompts, project, sample

CLASSES, EACH, DIM = 4, 60, 16


def world(seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Rows, labels, features and prompts of well separated classes."""
    random = np.random.default_rng(seed)
    centres = np.eye(CLASSES, DIM)
    labels = np.repeat(np.arange(CLASSES), EACH)
    features = centres[labels] + 0.15 * random.normal(size=(len(labels), DIM))
    return 1000 + random.permutation(len(labels)), labels, features.astype(np.float32), centres


def made(seed: int = 0, limit: int = 2000) -> ClassMap:
    rows, labels, features, prompts = world()
    by_row = dict(zip(rows.tolist(), features, strict=True))
    return draw_map(
        rows,
        labels,
        rows[::10],
        lambda some: np.stack([by_row[int(row)] for row in some]),
        prompts.astype(np.float32),
        seed=seed,
        limit=limit,
    )


def test_images_of_a_class_lie_together() -> None:
    found = made()
    places = np.stack([found.x, found.y], axis=1)
    assert places.min() == 0 and places.max() == 1 and len(places) == CLASSES * EACH == found.images
    distances = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(len(places))
    assert (found.label[distances.argmin(axis=1)] == found.label).mean() > 0.95


def test_a_seed_gives_the_same_map() -> None:
    first, again, other = made(limit=90), made(limit=90), made(seed=1, limit=90)
    assert np.array_equal(first.x, again.x) and np.array_equal(first.y, again.y)
    assert not np.array_equal(first.row, other.row)


def test_kinds_are_what_they_say() -> None:
    rows, labels, features, prompts = world()
    found = made()
    assert set(found.row[found.chosen].tolist()) == set(rows[::10].tolist())
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    for label in range(CLASSES):
        own = np.flatnonzero(labels == label)
        best = own[np.argsort(-(unit[own] @ prompts[label]))[: EACH // 10]]
        assert set(rows[best].tolist()) == set(found.row[found.nearest & (found.label == label)].tolist())


def test_parts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels, features, prompts = world()
    order = np.argsort(rows)

    def near() -> Any:
        of = lambda some: features[order[np.searchsorted(rows, some, sorter=order)]]  # noqa: E731
        return nearest_to_prompts(rows, labels, of, prompts.astype(np.float32), 7)

    whole = near()
    monkeypatch.setattr(image_map, "CHUNK", 11)
    assert np.array_equal(near(), whole) and whole.sum() == 7 * CLASSES


def test_sampling_is_even_over_classes_and_kinds() -> None:
    for seed in range(30):
        random = np.random.default_rng(seed)
        sizes = random.integers(1, 60, size=random.integers(1, 25))
        labels = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
        nearest, chosen = random.random((2, len(labels))) < 0.3
        limit = int(random.integers(1, len(labels) + 20))
        kept = sample(labels, nearest, chosen, limit, seed)
        assert len(kept) == min(limit, len(labels)) and len(np.unique(kept)) == len(kept)
        taken = np.bincount(labels[kept], minlength=len(sizes))
        short = taken < sizes
        assert not short.any() or taken[short].max() - taken[short].min() <= 1
        assert not short.any() or taken.max() <= taken[short].min() + 1
        assert np.array_equal(kept, sample(labels, nearest, chosen, limit, seed))


def test_a_thousand_classes_show_every_kind() -> None:
    labels = np.repeat(np.arange(1000), 30)
    place = np.tile(np.arange(30), 1000)
    nearest, chosen = (place >= 10) & (place < 20), place < 10
    kept = sample(labels, nearest, chosen, 2000, 0)
    kinds = [chosen[kept].sum(), nearest[kept].sum(), (~chosen & ~nearest)[kept].sum()]
    assert min(kinds) > 500 and np.bincount(labels[kept]).tolist() == [2] * 1000


def test_a_class_shows_all_its_chosen_images_when_there_is_room() -> None:
    chosen = np.arange(500) < 16
    kept = sample(np.zeros(500, np.int64), np.zeros(500, np.bool_), chosen, 100, 0)
    assert chosen[kept].sum() == 16 and len(kept) == 100


@pytest.mark.parametrize(("count", "dim"), [(0, 4), (1, 4), (2, 4), (3, 4), (4, 2), (9, 512)])
def test_few_images(count: int, dim: int) -> None:
    places = project(np.random.default_rng(0).normal(size=(count, dim)).astype(np.float32), 0)
    assert places.shape == (count, 2) and np.isfinite(places).all()


def test_images_that_are_all_the_same() -> None:
    places = project(np.ones((40, 8), np.float32), 0)
    assert np.isfinite(places).all() and (places >= 0).all() and (places <= 1).all()


def test_a_map_comes_back(tmp_path: Path) -> None:
    found = made(limit=50)
    found.write(tmp_path / image_map.MAP)
    back = ClassMap.read(tmp_path / image_map.MAP)
    assert np.allclose(back.x, found.x, atol=1e-4) and np.allclose(back.y, found.y, atol=1e-4)
    for name in ("row", "label", "nearest", "chosen"):
        assert np.array_equal(getattr(back, name), getattr(found, name))
        assert getattr(back, name).dtype == getattr(found, name).dtype
    assert back.images == CLASSES * EACH and len(back.row) == 50
    assert (tmp_path / image_map.MAP).stat().st_size < 50 * 40
