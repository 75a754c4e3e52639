"""Arithmetic with the same bits on every CPU, with any BLAS kernel, thread count and block shape.

**Cosines.** A float32 product rounds as its kernel pleases, so nothing may hang on its last bits. Here unit
vectors are first rounded to multiples of 2^-26. A product of two such values is a multiple of 2^-52, and by
Cauchy and Schwarz no partial sum of them exceeds 1 (or a hair more): every partial sum is a float64 as it is,
nothing is rounded, and so no order of summing and no fused multiply-add can change the result. Ties are then
real ties, which row numbers break.

**Order.** A float64 product costs two float32 ones. Where that matters, float32 products nominate, and only
what is closer together than twice `float32_error` is compared here (`settle`).

**exp, log, cosine.** numpy and the C library have several versions of each, choose by CPU, and these differ
in the last bit. Here are only sums, products and quotients of single numbers, which IEEE 754 defines to the
last bit, one numpy call for each, so that no compiler can join two of them. They are slow, and meant for
where an integer hangs on a probability.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mudg_core.index.vectors import Bool, Float64, Int64

GRID = 2.0**26
Scores = NDArray[np.floating]
Exact = Callable[[Int64, Int64], Scores]  # exact scores of some (line, column), one for each
LN2 = 0.6931471805599453
TERMS = 13  # of the series within half of LN2 of zero: what is left out is below 2^-53
CHUNK = 16_384  # values that stay in the cache
LOWEST, HIGHEST = -700.0, 700.0  # where results are neither subnormal nor infinite


def on_grid(unit: NDArray[np.floating]) -> Float64:
    """Unit vectors as multiples of 2^-26: what is rounded away is less than float32 rounds in a product."""
    grid = np.multiply(unit, GRID, dtype=np.float64)
    np.rint(grid, out=grid)
    grid *= 1 / GRID
    return np.asarray(grid, dtype=np.float64)


def exact_cosines(left: NDArray[np.floating], right: NDArray[np.floating]) -> Float64:
    """Of every unit vector of one matrix with every one of the other; exact up to lengths of 1.4."""
    return np.asarray(on_grid(left) @ on_grid(right).T, dtype=np.float64)


def exact_cosines_by_row(left: NDArray[np.floating], right: NDArray[np.floating]) -> Float64:
    """Of each unit vector with the one in the same place; all but the last axis broadcast."""
    return np.asarray(np.einsum("...d,...d->...", on_grid(left), on_grid(right)), dtype=np.float64)


def float32_error(dim: int) -> float:
    """How far a float32 product of two unit vectors can be from `exact_cosines`, whatever the kernel.

    Each of `dim` products and sums rounds by at most 2^-24 of what is summed so far, which is at most 1;
    rounding to the grid moves a cosine by at most sqrt(dim) / 2^26.
    """
    return float((dim + 1) * 2.0**-24 * 1.01 + np.sqrt(dim) * 2.0**-26)


@dataclass(frozen=True)
class Settled:
    columns: Int64  # of the scores, best first; of equal ones the lower id
    scores: Scores  # in that order: exact ones where any other was close
    unsure: Bool  # lines of which the first `wanted` may be others than are here


def settle(
    scores: Scores, ids: Int64, wanted: int, margin: float, exact: Exact, *, complete: bool
) -> Settled:
    """`scores` descend; an id below zero is nobody and stays last. `complete`: there are no others than
    these. With a margin of infinity all scores become exact."""
    there = ids >= 0
    with np.errstate(invalid="ignore"):  # of two that are nobody
        close = (scores[:, :-1] - scores[:, 1:] <= margin) & there[:, 1:]
    unsure = np.zeros(len(scores), np.bool_)
    if not complete and scores.shape[1] >= wanted:
        unsure = (scores[:, wanted - 1] - scores[:, -1] <= margin) & there[:, -1]
    columns = np.arange(scores.shape[1])[None].repeat(len(scores), axis=0)
    if not close.any() and margin < np.inf:
        return Settled(columns, scores, unsure)
    tied = there & (margin == np.inf)
    tied[:, :-1] |= close
    tied[:, 1:] |= close
    lines = np.flatnonzero(tied.any(axis=1))
    at, column = np.nonzero(tied[lines])
    settled = scores.copy()
    settled[lines[at], column] = exact(lines[at], column)
    keys = np.where(there[lines], ids[lines], np.iinfo(np.int64).max)
    columns[lines] = np.lexsort((keys, -settled[lines]), axis=1)
    settled[lines] = settled[lines[:, None], columns[lines]]
    return Settled(columns, settled, unsure)


def same_exp(values: NDArray[np.floating], terms: int = TERMS) -> Float64:
    """Powers of e; what is beyond LOWEST and HIGHEST counts as these. Fewer terms are quicker, and as much
    the same everywhere: 8 are right to 2^-31."""
    flat = np.asarray(values, np.float64).ravel()
    parts = [_powers(flat[first : first + CHUNK], terms) for first in range(0, len(flat), CHUNK)]
    return np.concatenate([np.zeros(0), *parts]).reshape(np.shape(values))


def _powers(values: Float64, terms: int) -> Float64:
    inside = np.clip(values, LOWEST, HIGHEST)
    doublings = np.rint(inside / LN2)
    rest = inside - doublings * LN2
    series = np.full_like(rest, 1 / math.factorial(terms))
    for term in range(terms - 1, -1, -1):
        series *= rest
        series += 1 / math.factorial(term)
    return np.asarray(np.ldexp(series, doublings.astype(np.int32)), dtype=np.float64)


def same_log(values: NDArray[np.floating]) -> Float64:
    """Of numbers above zero: Halley's steps, each with three times as many right digits as the one before."""
    numbers = np.asarray(values, np.float64)
    mantissa, exponent = np.frexp(numbers)
    logs = exponent * LN2 + (mantissa - 1)
    for _ in range(3):
        powers = same_exp(logs)
        logs = logs + 2 * (numbers - powers) / (numbers + powers)
    return np.asarray(logs, dtype=np.float64)


def same_cos(angle: float) -> float:
    """Of an angle from 0 to pi, by its series: Python's own arithmetic rounds alike everywhere."""
    total, term = 0.0, 1.0
    for count in range(1, 2 * TERMS, 2):
        total += term
        term *= -angle * angle / (count * (count + 1))
    return total


def sums_in_order(values: Float64) -> Float64:
    """Over the last axis, one after another: a plain sum adds in an order that is numpy's own affair."""
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    return np.asarray(np.cumsum(values, axis=-1)[..., -1], dtype=np.float64)


class _OneBlasThread:
    """One thread for each BLAS product in this process, while anybody is inside (see `topk.py` for why)."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limits: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._limits is None:
                self._limits = threadpool_limits(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


ONE_BLAS_THREAD = _OneBlasThread()
