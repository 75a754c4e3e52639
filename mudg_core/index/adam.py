"""Adam by arithmetic of single numbers: the same bits on every CPU, which torch's does not promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

FIRST, SECOND, TINY = 0.9, 0.999, 1e-8


class Adam:
    """Changes `values` in place. One numpy call for each operation, so that no compiler can join two."""

    def __init__(self, values: Float64) -> None:
        self.values, self.steps = values, 0
        self._mean, self._square = np.zeros_like(values), np.zeros_like(values)
        self._beta_powers = [1.0, 1.0]  # what is left of the zeros that both began with
        self._buffer = np.empty_like(values)

    def step(self, gradient: Float64, rate: float) -> None:
        self.steps += 1
        self._beta_powers = [self._beta_powers[0] * FIRST, self._beta_powers[1] * SECOND]
        self._mean *= FIRST
        self._mean += np.multiply(gradient, 1 - FIRST, out=self._buffer)
        np.square(gradient, out=self._buffer)
        self._buffer *= 1 - SECOND
        self._square *= SECOND
        self._square += self._buffer
        np.multiply(self._square, 1 / (1 - self._beta_powers[1]), out=self._buffer)
        np.sqrt(self._buffer, out=self._buffer)
        self._buffer += TINY
        np.divide(self._mean, self._buffer, out=self._buffer)
        self._buffer *= rate / (1 - self._beta_powers[0])
        self.values -= self._buffer
