"""Random numbers that depend on a seed, a stream and a number, and on nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
_WORD = 0xFFFFFFFF


class Dice:
    """A counter-based generator: the same (seed, stream, numbers) rolls the same in every process.

    The key always has the same length, because SeedSequence pads short keys with zeros and two
    different short keys could then be the same.
    """

    def __init__(self, seed: int, stream: int, first: int = 0, second: int = 0, third: int = 0) -> None:
        key = [seed & _WORD, (seed >> 32) & _WORD, stream, first & _WORD, first >> 32, second, third]
        self._generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))

    def chance(self, probability: float) -> bool:
        return self._generator.random() < probability

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._generator.random()

    def normal(self, spread: float) -> float:
        return spread * float(self._generator.standard_normal())

    def below(self, limit: int) -> int:
        return int(self._generator.random() * limit)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def weighted(self, weights: Mapping[str, float]) -> str:
        """One key of `weights`; the weights need not sum to one."""
        left = self._generator.random() * sum(weights.values())
        for name, weight in weights.items():
            left -= weight
            if left < 0:
                return name
        return name

    def noise(self, *shape: int) -> NDArray[np.float32]:
        """Standard normal noise."""
        return self._generator.standard_normal(shape, dtype=np.float32)

    def field(self, *shape: int) -> NDArray[np.float32]:
        """Uniform noise in [0, 1)."""
        return self._generator.random(shape, dtype=np.float32)
