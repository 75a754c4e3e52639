"""The absent-concept test: support by captions, blind to a caption's own image, against random captions."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.dataset import absent_classes
from mudg_core.dataset.absent_classes import (
    NEAREST,
    Presence,
    background_support,
    presence,
    support,
    without_copies,
)
from mudg_core.index.vectors import Float32, Int64, normalised


def units(random: np.random.Generator, *shape: int) -> Float32:
    return normalised(random.standard_normal(shape).astype(np.float32))


def slow_support(query: Float32, hits: Int64, texts: Float32, centre: Float32) -> float:
    asked = (query - centre) / np.linalg.norm(query - centre)
    cosines = []
    for row in hits:
        away = texts[row] - centre
        cosines.append(float(away / np.linalg.norm(away) @ asked) if row >= 0 else 0.0)
    return sum(sorted(cosines, reverse=True)[:NEAREST]) / NEAREST


@pytest.mark.parametrize("seed", range(3))
def test_support_is_that_of_the_nearest_captions_whatever_the_block(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(seed)
    texts, queries, centre = units(random, 50, 6), units(random, 7, 6), units(random, 1, 6)[0] / 3
    hits = random.integers(-1, 50, (7, 12))
    slow = [slow_support(q, h, texts, centre) for q, h in zip(queries, hits, strict=True)]
    for block in (128, 2):
        monkeypatch.setattr(absent_classes, "BLOCK", block)
        np.testing.assert_allclose(support(queries, hits, texts.__getitem__, centre), slow, atol=1e-5)


def test_a_query_that_finds_nothing_has_no_support() -> None:
    texts, centre = np.eye(3, dtype=np.float32), np.zeros(3, np.float32)
    hits = np.full((1, 4), -1)
    assert support(texts[:1], hits, texts.__getitem__, centre).tolist() == [0.0]


def test_a_caption_is_blind_to_its_own_image_and_its_copies() -> None:
    images = normalised(np.array([[1, 0, 0], [1, 0.1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1]], np.float32))
    hits = np.array([[0, 1, 2, 3, 4], [2, 4, 3, -1, -1]])
    kept = without_copies(np.array([0, 2]), hits, 3, images.__getitem__)
    assert kept.tolist() == [[2, 3, 4], [4, 3, -1]]


def test_a_caption_with_nothing_left_says_nothing() -> None:
    same = np.tile(np.eye(4, dtype=np.float32)[0], (20, 1))
    hits = np.arange(20)[None].repeat(2, axis=0)
    found = background_support(
        same[:2], np.array([0, 1]), hits, 10, same.__getitem__, same.__getitem__, np.zeros(4, np.float32)
    )
    assert np.isnan(found).all()


def test_shares_count_the_random_captions_with_no_more_support() -> None:
    texts, centre = np.eye(4, dtype=np.float32), np.zeros(4, np.float32)
    hits = np.array([[0] * NEAREST, [1] * NEAREST])
    known = np.array([0.5, np.nan, -0.5, 2.0, 0.0], np.float32)
    found = presence(texts[[0, 2]], hits, known, centre, texts.__getitem__)
    assert found.support.tolist() == pytest.approx([1.0, 0.0])
    assert found.share.tolist() == pytest.approx([4 / 5, 3 / 5])
    assert found.absent(0.7).tolist() == [False, True]


def test_a_warning_names_the_class_and_says_what_to_do() -> None:
    found = Presence(np.array([0.9, 0.1], np.float32), np.array([0.8, 0.02], np.float32))
    (told,) = absent_classes.warn_of_absent(["cat", "violin"], found, 0.1)
    assert (told.kind, told.classes) == ("absent", ("violin",))
    assert "no 'violin'" in told.message and "98 %" in told.message and "leave the class out" in told.message
    assert told.numbers == {"share": 0.02, "support": 0.1}
