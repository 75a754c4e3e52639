"""Cosines of texts and images, a tile of each at a time.

Float32 products are quick, but each kernel rounds them in its own way: they only nominate. Exact ones are
float64 products on a grid (see `exact_products.py`), for half the speed. They are kept as float32: what an
exact cosine rounds to is the same everywhere too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mudg_core.index.exact_products import on_grid
from mudg_core.index.products import Each, product
from mudg_core.index.vectors import Float32, normalised_usable

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

    def __init__(self, dim: int, tiles: int, device: str, each: Each, *, exact: bool) -> None:
        self._each, self._exact = each, exact
        kind = torch.float64 if exact else torch.float32
        self._images = torch.zeros(tiles, TILE, dim, device=device, dtype=kind)
        self._unusable: list[torch.Tensor] = []
        self._texts = torch.zeros(0, dim, device=device, dtype=kind)
        self._scores = torch.empty(tiles, TILE, TILE + SKEW, device=device)[:, :, :TILE]

    def load(self, images: NDArray[np.floating]) -> None:
        """Takes a block of images: made unit vectors a tile at a time, so that copies stay small."""
        self._unusable = []
        for tile, start in zip(self._images, range(0, len(images), TILE), strict=False):
            unit, usable = normalised_usable(images[start : start + TILE])
            good = np.flatnonzero(usable)
            tile.zero_()
            tile[_on(tile, good)] = self._ready(tile, unit)
            self._unusable.append(_on(tile, np.setdiff1d(np.arange(TILE), good)))

    def score(self, texts: Float32) -> Scores:
        """Up to a tile of texts with all images of the block."""
        self._texts = self._ready(self._texts, texts)
        tops = list(self._each(self._score_tile, range(len(self._unusable))))
        scores = self._scores[: len(tops), : len(texts)]
        return Scores(scores.view(*scores.shape[:2], -1, CHUNK), torch.cat(tops, dim=1))

    def _score_tile(self, number: int) -> torch.Tensor:
        """Maxima are taken at once, while the tile is still in the cache."""
        scores = self._scores[number, : len(self._texts)]
        if self._exact:
            scores.copy_(product(self._texts, self._images[number]))
        else:
            product(self._texts, self._images[number], out=scores)
        if len(self._unusable[number]):
            scores.index_fill_(1, self._unusable[number], -torch.inf)
        return scores.view(len(scores), -1, CHUNK).amax(2)

    def _ready(self, like: torch.Tensor, unit: Float32) -> torch.Tensor:
        return _on(like, on_grid(unit) if self._exact else unit)


def _on(like: torch.Tensor, array: NDArray[np.generic]) -> torch.Tensor:
    return torch.from_numpy(array).to(like.device)


def tiles_within(block_bytes: int, dim: int, *, exact: bool) -> int:
    """How many tiles of images go into a block, so that they and their scores take up to `block_bytes`."""
    return max(1, block_bytes // (TILE * 4 * ((2 if exact else 1) * dim + TILE)))
