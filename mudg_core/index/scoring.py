"""Cosines of texts and images whose bits do not depend on how the work was cut.

What a matrix product rounds to changes with the shape it is called with: libraries pick another kernel for
a few rows than for many. So here every product has one shape, a tile of texts by a tile of images, filled up
with zeros. In it a score depends on its two vectors alone, not on their places (tests hold the library to
that, with one and two threads). Another processor may still round otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mudg_core.index.products import Each, multiply
from mudg_core.index.vectors import normalised, usable

TILE = 1024  # products of 1024 x 1024 run within a few percent of the largest; smaller ones do not
CHUNK = 128  # divides TILE
SKEW = 16  # rows of scores that lie a power of two apart would compete for the same cache lines


@dataclass(frozen=True)
class Scores:
    """Cosines of texts with a block of images; -inf where there is no usable image."""

    tiles: torch.Tensor  # (tiles, texts, chunks of a tile, CHUNK): images in their order
    tops: torch.Tensor  # (texts, chunks): the best of each chunk

    def of(self, texts: slice) -> Scores:
        return Scores(self.tiles[:, texts], self.tops[texts])

    def at(self, texts: torch.Tensor, chunks: torch.Tensor) -> torch.Tensor:
        """The scores of some chunks, each of some text: (chunks, CHUNK)."""
        in_tile = self.tiles.shape[2]
        return self.tiles[chunks // in_tile, texts, chunks % in_tile]


class Scorer:
    """A block of images and its scores with one tile of texts, in buffers that are filled again and again."""

    def __init__(self, dim: int, tiles: int, device: str, each: Each) -> None:
        self._each = each
        self._images = torch.zeros(tiles, TILE, dim, device=device)
        self._unusable: list[torch.Tensor] = []
        self._texts = torch.zeros(TILE, dim, device=device)
        self._scores = torch.empty(tiles, TILE, TILE + SKEW, device=device)[:, :, :TILE]

    def load(self, images: NDArray[np.floating]) -> None:
        """Takes a block of images: float32 and normalised a tile at a time, so that copies stay small."""
        self._unusable = []
        for tile, start in zip(self._images, range(0, len(images), TILE), strict=False):
            part = _float32(images[start : start + TILE])
            good = np.flatnonzero(usable(part))
            tile.zero_()
            tile[_on(tile, good)] = _on(tile, normalised(part[good]))
            self._unusable.append(_on(tile, np.setdiff1d(np.arange(TILE), good)))

    def score(self, texts: NDArray[np.floating]) -> Scores:
        """Up to a tile of texts with all images of the block."""
        self._texts.zero_()
        self._texts[: len(texts)] = _on(self._texts, np.array(texts, dtype=np.float32))
        tops = list(self._each(self._score_tile, range(len(self._unusable))))
        scores = self._scores[: len(tops), : len(texts)]
        return Scores(scores.view(*scores.shape[:2], -1, CHUNK), torch.cat(tops, dim=1)[: len(texts)])

    def _score_tile(self, number: int) -> torch.Tensor:
        """Maxima are taken at once, while the tile is still in the cache."""
        scores = self._scores[number]
        multiply(self._texts, self._images[number], out=scores)
        if len(self._unusable[number]):
            scores.index_fill_(1, self._unusable[number], -torch.inf)
        return scores.view(TILE, -1, CHUNK).amax(2)


def _float32(images: NDArray[np.floating]) -> NDArray[np.float32]:
    """torch converts half precision ten times as fast as numpy, but only from memory it may write."""
    converted: NDArray[np.float32] = torch.from_numpy(np.array(images)).float().numpy()
    return converted


def _on(like: torch.Tensor, array: NDArray[np.generic]) -> torch.Tensor:
    return torch.from_numpy(array).to(like.device)


def tiles_within(block_bytes: int, dim: int) -> int:
    """How many tiles of images go into a block, so that they and their scores take up to `block_bytes`."""
    return max(1, block_bytes // (TILE * 4 * (dim + TILE)))
