"""Unit vectors, which vectors can become one, and work on many of them block by block.

Every step here is one that IEEE 754 rounds in one way: conversions, products, sums of two, roots, quotients.
The order of sums is ours. So a vector becomes the same unit vector on every CPU, in any block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bool = NDArray[np.bool_]
Float16 = NDArray[np.float16]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
SHORTEST = np.float32(1e-12)
FEW = 64  # squares that are no longer summed in halves
HALF = np.float32(2**-10)  # unit vectors in half precision are within this of length one
VALUES = 32_768  # looked at together: they stay in the cache, and torch starts no threads for so few
BLOCK_BYTES = 128 << 20


def normalised(vectors: NDArray[np.floating]) -> Float32:
    """Unit vectors; a zero vector stays zero."""
    return _scaled(vectors)[0]


def as_unit(vectors: Float32) -> Float32:
    """Unit vectors, where those that are of unit length keep their bits: as they are, if all of them are."""
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.flatnonzero(np.abs(_lengths(vectors) - 1) > HALF)
    if not len(far):
        return vectors
    unit = vectors.copy()
    unit[far] = normalised(vectors[far])
    return unit


def usable(vectors: NDArray[np.floating]) -> Bool:
    """Which rows `normalised` makes unit vectors of: all but those with NaN or Inf, and those of norm zero.

    The norm alone tells: it is NaN or infinite where a value is, or where it overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [_lengths(_single(vectors[here])) for here in _chunks(vectors)]
    return _in_range(np.concatenate([np.zeros(0, np.float32), *parts]))


def normalised_usable(vectors: NDArray[np.floating]) -> tuple[Float32, Bool]:
    """Unit vectors of the rows that are usable, and which these are; reads its input once."""
    unit, lengths = _scaled(vectors)
    good = _in_range(lengths)
    return (unit if good.all() else unit[good]), good


def _scaled(vectors: NDArray[np.floating]) -> tuple[Float32, Float32]:
    """Divided by their lengths, a few rows at a time: what stays in the cache is read from memory once."""
    unit, lengths = np.empty(vectors.shape, np.float32), np.empty(len(vectors), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for here in _chunks(vectors):
            single = _single(vectors[here])
            lengths[here] = _lengths(single)
            np.divide(single, np.maximum(lengths[here], SHORTEST)[:, None], out=unit[here])
    return unit, lengths


def _chunks(vectors: NDArray[np.floating]) -> list[slice]:
    rows = max(1, VALUES // max(1, vectors.shape[1]))
    return [slice(first, first + rows) for first in range(0, len(vectors), rows)]


def _in_range(lengths: Float32) -> Bool:
    return np.asarray((lengths >= SHORTEST) & (lengths < np.inf), dtype=np.bool_)


def _lengths(single: Float32) -> Float32:
    """The squares are summed in halves, the second half onto the first, and the last few from left to right.
    A library's own sum takes whatever order suits its kernel."""
    squares = np.square(single)
    while (width := squares.shape[1]) > FEW:
        half = (width + 1) // 2
        squares[:, : width - half] += squares[:, half:]
        squares = squares[:, :half]
    return np.asarray(np.sqrt(np.add.accumulate(squares, axis=1)[:, -1]), dtype=np.float32)


def _single(vectors: NDArray[np.floating]) -> Float32:
    """In single precision. Torch turns half into single four times as fast as numpy does, to the same bits,
    as long as its threads stay out: they would wait for those that faiss keeps spinning."""
    if vectors.dtype != np.float16:
        return np.asarray(vectors, dtype=np.float32)
    import torch  # cached runs import this module and do without torch

    single: Float32 = torch.from_numpy(np.array(vectors)).float().numpy()
    return single


def blocks(lines: int, bytes_each: int) -> list[slice]:
    """Slices of as many lines as fit, one at least; of no lines there is one empty slice."""
    step = max(1, BLOCK_BYTES // max(1, bytes_each))
    return [slice(first, min(first + step, lines)) for first in range(0, max(1, lines), step)]
