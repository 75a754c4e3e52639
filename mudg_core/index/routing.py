"""The numbers that route a query, so coarse that float32 products of them are exact.

A trained router's scores decide cells by their order and by sums of probabilities, over many cells: with an
error as large as float32 allows, every tenth query would have to be routed again. So the error is taken away.
Queries are rounded to multiples of 2^-11 and weights to multiples of 2^-6. A product of two is a multiple of
2^-17, and as long as weights are at most 100 long and biases at most 20, no partial sum reaches 128: every
one is a float32 as it is, in any order, with or without fused multiply-adds. Rounding moves a score by about
a hundredth, and probabilities by a hundredth of themselves; the router is trained with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.vectors import Float32

Float64 = NDArray[np.float64]

QUERY_GRID, WEIGHT_GRID = np.float32(2**11), np.float32(2**6)
LONGEST, LARGEST_BIAS = 100.0, 20.0


def rounded_queries(unit: Float32) -> Float32:
    return np.asarray(np.rint(unit * QUERY_GRID) / QUERY_GRID, dtype=np.float32)


def rounded_weights(weights: NDArray[np.floating]) -> Float32:
    """Of weights or biases."""
    return np.asarray(np.rint(weights * WEIGHT_GRID) / WEIGHT_GRID, dtype=np.float32)


def routing_scores(queries: Float32, weights: Float32, bias: Float32) -> Float32:
    """All of them rounded: exact, so the same with every BLAS kernel, thread count and block."""
    scores = np.matmul(queries, weights.T)
    scores += bias
    return np.asarray(scores, dtype=np.float32)


def limit(weights: Float64, bias: Float64) -> None:
    """Shortens what is too long for exact products, in place. Lengths are those of rounded weights, whose
    squares are summed without rounding; half a step more for what rounding adds."""
    lengths = _lengths(rounded_weights(weights))
    if (lengths > LONGEST).any():
        weights *= (LONGEST / np.maximum(lengths, LONGEST))[:, None]
    np.clip(bias, -LARGEST_BIAS, LARGEST_BIAS, out=bias)


def as_routing(weights: Float32, bias: Float32) -> tuple[Float32, Float32]:
    """Rounded copies within the limits, of weights that something else may have trained. What `limit` has let
    pass stays as it is, though rounding has made it longer, before and after, by half a step a dimension."""
    rounded = rounded_weights(weights)
    lengths = _lengths(rounded)
    long = np.flatnonzero(lengths > LONGEST + np.sqrt(weights.shape[1]) / WEIGHT_GRID)
    rounded[long] = rounded_weights(weights[long] * (LONGEST / lengths[long])[:, None])
    return rounded, rounded_weights(np.clip(bias, -LARGEST_BIAS, LARGEST_BIAS))


def _lengths(rounded: Float32) -> Float64:
    return np.asarray(np.sqrt(np.square(rounded, dtype=np.float64).sum(axis=1)), dtype=np.float64)
