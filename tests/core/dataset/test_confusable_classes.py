"""Two classes that are nearly one, and two that only look alike."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from mudg_core.dataset import confusable_classes
from mudg_core.dataset.confusable_classes import (
    ConfusablePair,
    count_swaps,
    find_confusable_classes,
    mean_images,
    warn_of_confusable_classes,
)
from mudg_core.index.vectors import Float32, Int64, normalised

SEED = 0


def world(classes: int, rows: int = 40, dim: int = 16) -> tuple[Float32, Float32, Int64]:
    """Prompts along axes of their own, images around them, and the images of each."""
    random = np.random.default_rng(SEED)
    labels = np.eye(dim, dtype=np.float32)[:classes]
    images = np.repeat(labels, rows, axis=0) + 0.1 * random.standard_normal((classes * rows, dim))
    return labels, normalised(images), np.arange(classes * rows).reshape(classes, rows)


def found(labels: Float32, images: Float32, hits: Int64) -> list[ConfusablePair]:
    return find_confusable_classes(labels, hits, mean_images(hits, images.__getitem__), images.mean(axis=0))


def test_classes_that_are_apart_are_no_twins() -> None:
    assert found(*world(5)) == []


@pytest.mark.parametrize("block", [2, 512])
def test_images_in_common_make_twins(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confusable_classes, "BLOCK", block)
    labels, images, hits = world(5)
    hits = hits.copy()
    hits[3, :30] = hits[1, :30]
    (pair,) = found(labels, images, hits)
    assert (pair.one, pair.other, pair.shared) == (1, 3, 0.75)
    hits[3, 8:] = -1  # then it has eight hits, all of them those of the other
    assert [pair.shared for pair in found(labels, images, hits)] == [1.0]


def test_synonyms_with_different_images_are_twins_too() -> None:
    labels, images, hits = world(4)
    labels = np.concatenate([labels, normalised(labels[:1] + 0.1 * labels[1:2])])
    hits = np.concatenate([hits[:, :20], hits[:1, 20:]])
    (pair,) = found(labels, images, hits)
    assert (pair.one, pair.other, pair.shared) == (0, 4, 0.0)
    assert pair.likeness > 0.9 and pair.cosine > 0.9


def test_a_prompt_that_is_near_to_everything_makes_no_twins() -> None:
    labels, images, hits = world(4)
    hub = normalised(labels.sum(axis=0, keepdims=True) + 0.5 * labels[:1])
    everything = np.concatenate([hits[0, :13], hits[1:, :9].ravel()])[
        None
    ]  # images of all, most of the first
    assert (
        hub @ images[:40].mean(axis=0) > hub @ images[everything[0]].mean(axis=0) > hub @ images.mean(axis=0)
    )
    assert found(np.concatenate([labels, hub]), images, np.concatenate([hits, everything])) == []


def test_a_class_without_hits_is_nobody_s_twin() -> None:
    labels, images, hits = world(3)
    hits = hits.copy()
    hits[[0, 2]] = -1
    assert found(labels, images, hits) == []


def test_pairs_come_in_order_and_once() -> None:
    labels, images, hits = world(6)
    hits = hits.copy()
    hits[4], hits[2, :25] = hits[0], hits[0, :25]
    pairs = found(labels, images, hits)
    assert {(pair.one, pair.other) for pair in pairs} == {(0, 4), (0, 2), (2, 4)}
    assert all(one.shared >= other.shared for one, other in pairwise(pairs))


def test_swaps_are_candidates_of_one_that_are_labelled_as_the_other() -> None:
    hits = pa.table({"row": [1, 1, 1, 2, 2, 3, 4, 9], "label": [0, 1, 1, 0, 1, 0, 2, 1]})
    labelled = pa.table({"row": [4, 2, 1, 3], "label": [2, 0, 1, 2]})  # row 9 was left out
    (pair,) = count_swaps([ConfusablePair(0, 1, 0.9, 0.5, 0.5)], hits, labelled)
    assert pair.swapped == pytest.approx(2 / 5)  # row 1 of label 0, row 2 of label 1; rows 1 1 2 2 3 in all
    (told,) = warn_of_confusable_classes(["cat", "kitten"], [pair])
    assert told.classes == ("cat", "kitten") and told.numbers["swapped"] == pytest.approx(0.4)
    assert "50 %" in told.message and "40 %" in told.message and "Merge" in told.message
