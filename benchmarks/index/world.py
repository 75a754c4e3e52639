"""A generated world of image and text embeddings with a modality gap, for recall and speed.

Concepts lie in groups, frequent and rare ones. What an image and a text of a concept have in common is a
small part of either: both are mostly the mean of their modality, and a private part the other knows nothing
of. That is what makes texts poor queries of an index that was made for images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

Float32 = npt.NDArray[np.float32]
TextStream = Literal["training", "tuning", "report"]

DIM, SHARED, PRIVATE = 512, 128, 256
CONCEPTS, GROUPS = 20_000, 256
GAP = 0.30  # cosine between the means of the two modalities
MEAN, COMMON, OWN = (math.sqrt(share) for share in (0.45, 0.22, 0.33))
HALF = math.sqrt(0.5)
BLOCK = 65_536
_CHUNK = 4_096  # a block is drawn in chunks of this size, each with a seed of its own
_STREAMS = ("concepts", "gallery", "training", "tuning", "report")


@dataclass(frozen=True)
class Looseness:
    """How far images and texts stray from their concept, and its say in an image's private part."""

    image: float
    text: float
    private: float


TIGHT = Looseness(image=0.3, text=0.4, private=0.85)
LOOSE = Looseness(image=0.6, text=0.8, private=0.5)


class Concepts(NamedTuple):
    """What does not depend on how many images or texts are drawn."""

    shared: Float32
    private: Float32
    up_to: npt.NDArray[np.float64]  # cumulated frequency, for drawing concepts
    bases: tuple[Float32, Float32, Float32]  # of the shared part and of the images' and the texts' own
    means: tuple[Float32, Float32]


@dataclass(frozen=True)
class World:
    """The same seed gives the same rows, however many are asked for and in whatever blocks.

    The gallery and each set of texts have seeds of their own: the size of one does not change another.
    """

    seed: int
    looseness: Looseness = TIGHT

    def images(self, rows: int, block: int = BLOCK) -> Iterator[Float32]:
        """The gallery; one block at a time is in memory."""
        return self._rows("gallery", self._draw_images, rows, block)

    def texts(self, rows: int, stream: TextStream = "training", block: int = BLOCK) -> Iterator[Float32]:
        """Texts to train on, to tune search with, or to report: never the same ones."""
        return self._rows(stream, self._draw_texts, rows, block)

    @cached_property
    def concepts(self) -> Concepts:
        with threadpool_limits(1):
            return self._draw_parameters()

    def _draw_parameters(self) -> Concepts:
        random = self._random("concepts", 0)
        groups, group = _decaying(random, GROUPS, SHARED), random.integers(0, GROUPS, CONCEPTS)
        frequency = (np.arange(CONCEPTS) + 10.0) ** -0.7
        return Concepts(
            shared=_unit(HALF * groups[group] + HALF * _decaying(random, CONCEPTS, SHARED)),
            private=_decaying(random, CONCEPTS, PRIVATE),
            up_to=np.cumsum(frequency / frequency.sum()),
            bases=(_basis(random, SHARED), _basis(random, PRIVATE), _basis(random, PRIVATE)),
            means=_means(random),
        )

    def _draw_images(self, random: np.random.Generator) -> Float32:
        known, at = self.concepts, self._draw_concepts(random)
        shared = _unit(known.shared[at] + self.looseness.image * _decaying(random, _CHUNK, SHARED))
        share = self.looseness.private
        noise = _decaying(random, _CHUNK, PRIVATE)
        own = _unit(math.sqrt(share) * known.private[at] + math.sqrt(1 - share) * noise)
        return _unit(
            MEAN * known.means[0] + COMMON * (shared @ known.bases[0]) + OWN * (own @ known.bases[1])
        )

    def _draw_texts(self, random: np.random.Generator) -> Float32:
        known, at = self.concepts, self._draw_concepts(random)
        shared = _unit(known.shared[at] + self.looseness.text * _decaying(random, _CHUNK, SHARED))
        own = _decaying(random, _CHUNK, PRIVATE)
        return _unit(
            MEAN * known.means[1] + COMMON * (shared @ known.bases[0]) + OWN * (own @ known.bases[2])
        )

    def _draw_concepts(self, random: np.random.Generator) -> npt.NDArray[np.int64]:
        found = np.searchsorted(self.concepts.up_to, random.random(_CHUNK), side="right")
        return np.minimum(found, CONCEPTS - 1)

    def _rows(
        self, stream: str, draw: Callable[[np.random.Generator], Float32], rows: int, block: int
    ) -> Iterator[Float32]:
        """Whole chunks are drawn and cut: a product of fewer rows may round differently.

        For the same reason products use one thread; small ones are also quicker so on a busy machine.
        """
        for start in range(0, rows, block):
            stop = min(start + block, rows)
            out = np.empty((stop - start, DIM), np.float32)
            for chunk in range(start // _CHUNK, -(-stop // _CHUNK)):
                first = chunk * _CHUNK
                low, high = max(start, first), min(stop, first + _CHUNK)
                out[low - start : high - start] = draw(self._random(stream, chunk))[
                    low - first : high - first
                ]
            yield out

    def _random(self, stream: str, chunk: int) -> np.random.Generator:
        key = (_STREAMS.index(stream), chunk)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))


def _unit(rows: Float32) -> Float32:
    scaled: Float32 = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return scaled


def _decaying(random: np.random.Generator, rows: int, dim: int) -> Float32:
    """Unit vectors whose variance falls with the coordinate, as that of real embeddings does."""
    scale = np.arange(1, dim + 1, dtype=np.float32) ** np.float32(-0.5)
    return _unit(random.standard_normal((rows, dim), dtype=np.float32) * scale)


def _basis(random: np.random.Generator, dim: int) -> Float32:
    columns: npt.NDArray[np.float64] = np.linalg.qr(random.standard_normal((DIM, dim)))[0]
    return columns.T.astype(np.float32)


def _means(random: np.random.Generator) -> tuple[Float32, Float32]:
    """Of images and of texts, at the angle that GAP says."""
    image, other = np.linalg.qr(random.standard_normal((DIM, 2)))[0].T
    text = GAP * image + math.sqrt(1 - GAP**2) * other
    return image.astype(np.float32), text.astype(np.float32)
