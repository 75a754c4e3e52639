"""Small worlds of unit vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]


def unit(vectors: NDArray[np.floating]) -> Float32:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def sphere(rows: int, dim: int, seed: int = 0) -> Float32:
    return unit(np.random.default_rng(seed).normal(size=(rows, dim)))


def modality_gap(rows: int, seed: int = 0) -> tuple[Float32, Float32]:
    """Images and their texts: close in meaning, but each kind in a cone of its own, as CLIP has them."""
    random = np.random.default_rng(seed)
    topics = random.normal(size=(40, 24))
    shared = topics[random.integers(0, 40, rows)] + 0.7 * random.normal(size=(rows, 24))
    offset = np.zeros(24)
    offset[:2] = 5.0, -3.0
    return unit(shared + offset), unit(shared - offset + 0.4 * random.normal(size=(rows, 24)))
