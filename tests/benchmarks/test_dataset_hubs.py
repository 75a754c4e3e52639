"""What a label gets once its queries are near to everything."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.dataset.hubs import fewer, made_hubs

Float32 = NDArray[np.float32]
LABELS = np.repeat(np.arange(5), 4)


def unit(vectors: NDArray[np.floating]) -> Float32:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def world(seed: int) -> tuple[Float32, Float32]:
    """Images in a cone around a direction of their own, and queries elsewhere: the modality gap."""
    random = np.random.default_rng(seed)
    return unit(random.normal(size=(600, 16)) + 2 * np.eye(16)[0]), unit(random.normal(size=(20, 16)))


def test_a_label_that_has_not_moved_gets_what_it_got() -> None:
    images, queries = world(0)
    assert made_hubs(images, queries, LABELS, 40, pull=0.0) == {"rank": [0.0] * 5, "cosine": [0.0] * 5}


def test_a_hub_takes_by_cosine_what_it_cannot_take_by_rank() -> None:
    for seed in range(5):
        excess = made_hubs(*world(seed), LABELS, 40, pull=0.5)
        assert np.mean(excess["cosine"]) > np.mean(excess["rank"]) + 0.1
        assert fewer(excess) >= 0.8


def test_fewer_counts_labels() -> None:
    assert fewer({"rank": [0.1, 0.5, 0.2], "cosine": [0.2, 0.4, 0.2]}) == pytest.approx(1 / 3)
