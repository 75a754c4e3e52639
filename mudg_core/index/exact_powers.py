"""exp, log and cosine with the same bits on every CPU.

numpy and the C library have several versions of each, choose by CPU, and these differ in the last bit. Here
are only sums, products and quotients of single numbers, which IEEE 754 defines to the last bit, one numpy
call for each, so that no compiler can join two of them. They are slow, and meant for where an integer hangs
on a probability.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

LN2 = 0.6931471805599453
TERMS = 13  # of the series within half of LN2 of zero: what is left out is below 2^-53
CHUNK = 16_384  # values that stay in the cache
LOWEST, HIGHEST = -700.0, 700.0  # where results are neither subnormal nor infinite


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
