"""The numbers that route a query, so coarse that float32 products of them are exact.

A trained router's scores decide cells by their order and by sums of probabilities, over many cells: with an
error as large as float32 allows, every tenth query would have to be routed again. So the error is taken away.
Queries are rounded to multiples of 2^-11 and weights to multiples of 2^-6. A product of two is a multiple of
2^-17, and as long as weights are at most 100 long and biases at most 20, no partial sum reaches 128: every
one is a float32 as it is, in any order, with or without fused multiply-adds. Rounding moves a score by about
a hundredth, and probabilities by a hundredth of themselves; the router is trained with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.exact import TERMS, Exact, same_exp, same_log, sums_in_order
from mudg_core.index.vectors import Bool, Float32, Float64, Int64, blocks

POWER_BYTES = 48  # that a score takes while it becomes a probability
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


@dataclass(frozen=True)
class Probing:
    """How much of the index a query reads: `probes` cells at most. A trained router knows how likely each
    cell is, so with one it also stops once the cells chosen have probability `mass`, and takes cells in the
    order of score - gain * log(size): with gain 1, by expected hits for each vector read."""

    probes: int
    mass: float = 1.0
    gain: float = 0.0


def choose(scores: NDArray[np.floating], sizes: Int64, probing: Probing) -> Int64:
    """See `Probing`. The first cell is always read. Of equal worth the lower cell comes first."""
    worth = scores - size_penalty(sizes, probing.gain)
    cells = ranked(worth, min(probing.probes, scores.shape[1]))
    return cells if probing.mass >= 1 else np.where(_mass_not_reached(scores, cells, probing.mass), cells, -1)


def ranked(worth: NDArray[np.floating], count: int) -> Int64:
    """The best of each line, best first, and of equal ones the lower."""
    values, cells = highest(worth, min(count + 1, worth.shape[1]))
    again = values[:, 1:] == values[:, :-1]
    equal = np.flatnonzero(again.any(axis=1))
    order = np.lexsort((cells[equal], -values[equal]), axis=1)
    cells[equal] = np.take_along_axis(cells[equal], order, axis=1)
    for line in np.flatnonzero(again[:, -1]) if cells.shape[1] > count else ():
        better = int((values[line] > values[line, -1]).sum())  # than the last one, which others are equal to
        cells[line, better:count] = np.flatnonzero(worth[line] == values[line, -1])[: count - better]
    return cells[:, :count]


def best_by_number(
    values: NDArray[np.floating], cells: Int64, count: int, margin: float, exact: Exact, *, complete: bool
) -> tuple[Int64, Bool]:
    """Which the best are, in the order of their numbers, and in which lines there may be others. What is
    within the margin of the last one is compared exactly; what is above is among the best, what is below is
    not."""
    last = values[:, count - 1, None]
    close = np.abs(values - last) <= margin
    unsure = close[:, -1] & (not complete)
    close[unsure], close[:, count - 1] = False, True
    columns = np.flatnonzero(close.any(axis=0))
    first, end = int(columns[0]), int(columns[-1]) + 1
    worth, some = np.where(values[:, first:end] > last, np.inf, -np.inf), cells[:, first:end]
    lines, columns = np.nonzero(close[:, first:end])
    worth[lines, columns] = exact(lines, columns + first)
    order = np.lexsort((some, -worth), axis=1)[:, : count - first]
    best = np.concatenate([cells[:, :first], np.take_along_axis(some, order, axis=1)], axis=1)
    return np.sort(best, axis=1), unsure


def _mass_not_reached(scores: NDArray[np.floating], cells: Int64, mass: float) -> Bool:
    """Whether the cells before each hold less than `mass`. Quick probabilities tell; where they are within
    their error of it, the slow ones do. Either way float64 adds powers that are right to a few last bits, so
    that sums are right to 2^-52 for each cell."""
    import torch  # cached runs import this module and do without torch

    below = (scores - scores.max(axis=1, keepdims=True)).astype(np.float64)
    quick = torch.from_numpy(below).softmax(dim=1).numpy()
    before = _mass_before(np.take_along_axis(quick, cells, axis=1))
    less = np.asarray(before < mass, dtype=np.bool_)
    error = 2.0**-40 + 2.0**-50 * scores.shape[1]
    close = np.flatnonzero((np.abs(before - mass) < error).any(axis=1))
    for part in blocks(len(close), POWER_BYTES * scores.shape[1]) if len(close) else ():
        lines = close[part]
        taken = np.take_along_axis(probabilities(scores[lines]), cells[lines], axis=1)
        less[lines] = _mass_before(taken) < mass
    return less


def _mass_before(taken: NDArray[np.floating]) -> NDArray[np.floating]:
    before = np.zeros_like(taken)
    np.cumsum(taken[:, :-1], axis=1, out=before[:, 1:])
    return before


def highest(scores: NDArray[np.floating], count: int) -> tuple[NDArray[np.floating], Int64]:
    """The best of each line, best first; of equal ones whichever."""
    import torch

    top = torch.from_numpy(scores).topk(count, dim=1)
    return top.values.numpy(), top.indices.numpy()


def size_penalty(sizes: Int64, gain: float) -> Float32:
    """What a cell's size takes from its worth."""
    return _penalty(np.asarray(sizes, np.int64).tobytes(), gain)


@lru_cache(maxsize=8)
def _penalty(sizes: bytes, gain: float) -> Float32:
    """A logarithm that is the same everywhere is slow; the sizes of an index do not change."""
    logs = same_log(np.frombuffer(sizes, np.int64) + 1.0).astype(np.float32)
    return np.asarray(np.float32(gain) * logs, dtype=np.float32)


def probabilities(scores: NDArray[np.floating], terms: int = TERMS) -> Float64:
    """Softmax, with the same bits everywhere."""
    powers = same_exp(scores - scores.max(axis=1, keepdims=True), terms)
    powers /= sums_in_order(powers)[:, None]
    return powers


def vectors_read(cells: Int64, sizes: Int64) -> Int64:
    """How many vectors each query reads."""
    return np.asarray(np.where(cells >= 0, sizes[cells], 0).sum(axis=1))
