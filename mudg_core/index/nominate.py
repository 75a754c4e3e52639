"""The nearest images of one shard: nominated by float32 products, compared exactly.

A float32 product is within `float32_error` of the exact cosine, whatever kernel made it. So an image that
belongs to the `keep` nearest scores at most twice that below the `keep`-th best float32 score: the margin
here. A few places more than `keep` hold all images within it, nearly always. Where they do not (many
copies of one image, say), the text is compared with all images exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.exact_products import exact_cosines_by_row, float32_error
from mudg_core.index.products import Each, side_by_side
from mudg_core.index.scoring import TILE, Scorer, tiles_within
from mudg_core.index.topk import TopK
from mudg_core.index.vectors import Bool, Float32, Int64, normalised

Vectors = NDArray[np.floating]
Progress = Callable[[float], None]

SPARE = 5
FEW = 64  # images for each that is kept: with fewer, exact products of all cost less than looking twice
VALUES = 1 << 18  # of images compared again at once: their copies stay in the cache
ROUNDING = 2.0**-25  # of an exact cosine to float32


@dataclass(frozen=True)
class Shard:
    """Images in the order of their rows, so that of equal cosines the first is the one to keep."""

    images: Vectors
    order: Int64 | None

    def __len__(self) -> int:
        return len(self.images)

    def read(self, block: slice) -> Vectors:
        return self.images[block] if self.order is None else self.images[self.order[block]]

    def unit(self, places: Int64) -> Float32:
        return normalised(self.images[places if self.order is None else self.order[places]])


def search(
    texts: Vectors, shard: Shard, keep: int, device: str, block_bytes: int, progress: Progress
) -> tuple[Int64, Float32]:
    """Places and cosines of each text's nearest images, best first; -1 and -inf where there are no more."""
    with side_by_side(device) as each:

        def best(texts: Vectors, keep: int, exact: bool) -> tuple[Int64, Float32]:
            return _best(texts, shard, keep, device, block_bytes, each, exact, progress)

        if len(shard) <= FEW * keep:
            return best(texts, keep, True)
        places, scores = best(texts, keep + SPARE, False)
        nominated, unsure = _nominated(scores, keep, texts.shape[1])
        places, cosines = _compared(texts, shard, np.where(nominated, places, -1), keep, each)
        if unsure.any():
            places[unsure], cosines[unsure] = best(texts[unsure], keep, True)
    return places, cosines


def _best(
    texts: Vectors,
    shard: Shard,
    keep: int,
    device: str,
    block_bytes: int,
    each: Each,
    exact: bool,
    progress: Progress,
) -> tuple[Int64, Float32]:
    """The best by score over all blocks of images."""
    tiles = min(tiles_within(block_bytes, texts.shape[1], exact=exact), -(-len(shard) // TILE))
    scorer, best = Scorer(texts.shape[1], tiles, device, each, exact=exact), TopK(len(texts), keep, device)
    for place in range(0, len(shard), tiles * TILE):
        progress(place / len(shard))
        scorer.load(shard.read(slice(place, place + tiles * TILE)))
        for text in range(0, len(texts), TILE):
            best.absorb(text, scorer.score(normalised(texts[text : text + TILE])), place)
    places, cosines = (found.cpu().numpy() for found in best.result())
    return places, cosines


def _nominated(scores: Float32, keep: int, dim: int) -> tuple[Bool, Bool]:
    """Which places hold an image that may be among the nearest, and which texts may have more of them."""
    least = scores[:, keep - 1, None].astype(np.float64) - 2 * (float32_error(dim) + ROUNDING)
    nominated = (scores >= least) & (scores > -np.inf)
    return nominated, nominated[:, -1]


def _compared(texts: Vectors, shard: Shard, places: Int64, keep: int, each: Each) -> tuple[Int64, Float32]:
    """The best of the nominated, by exact cosine and then by place; a place of -1 is nobody."""
    step = max(1, VALUES // (places.shape[1] * texts.shape[1]))
    parts = [slice(first, first + step) for first in range(0, len(texts), step)]
    each_part = each(lambda part: _cosines(texts[parts[part]], shard, places[parts[part]]), range(len(parts)))
    cosines = np.concatenate(list(each_part))
    order = np.lexsort((places, -cosines), axis=1)[:, :keep]
    return np.take_along_axis(places, order, 1), np.take_along_axis(cosines, order, 1)


def _cosines(texts: Vectors, shard: Shard, places: Int64) -> Float32:
    """Those nominated come first in a line, so that only a few columns hold any."""
    cosines = np.full(places.shape, -np.inf, np.float32)
    used = int((places >= 0).any(axis=0).sum())
    lines = places[:, :used]
    images = shard.unit(lines.ravel()).reshape(*lines.shape, -1)
    exact = exact_cosines_by_row(normalised(texts)[:, None], images)
    cosines[:, :used] = np.where(lines >= 0, exact + 0.0, -np.inf)
    return cosines
