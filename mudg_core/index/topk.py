"""The best few of very many cosines of texts and images, a tile of each at a time, without sorting them.

After the first block hardly a score beats its text's worst kept one. So a block costs a comparison for each
chunk's maximum, and more only where that is good enough. A cosine and the place of its image are kept as one
integer, the better the larger. So no two are equal, and what is kept cannot depend on the order in which
scores came.

Float32 products are quick, but each kernel rounds them in its own way: they only nominate. Exact ones are
float64 products on a grid (see `exact.py`), for half the speed. They are kept as float32: what an exact
cosine rounds to is the same everywhere too.

Each product runs on one thread, and several run side by side. A BLAS that shares one product among threads
cuts it into other pieces than one thread does, and its sums may round otherwise (OpenBLAS at 513 dimensions
does); and it is slower. On a processor numpy's BLAS does it: torch brings MKL, which was 5 to 10 % slower
where we measured it (an AMD processor with AVX-512).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mudg_core.index.exact import ONE_BLAS_THREAD, on_grid
from mudg_core.index.vectors import Float32, Int64, normalised, normalised_usable

SHARE = 64  # only this part of a block's scores is looked at closely at a time, for the memory that it takes
PLACES = 2**32 - 1
TILE = 1024  # products of 1024 x 1024 run within a few percent of the largest; smaller ones do not
CHUNK = 128  # divides TILE
SKEW = 16  # rows of scores that lie a power of two apart would compete for the same cache lines
T = TypeVar("T")


class Images(Protocol):
    """Images of a shard, in the order of their places."""

    def __len__(self) -> int: ...

    def read(self, block: slice, /) -> NDArray[np.floating]: ...


def best_places(
    texts: NDArray[np.floating],
    images: Images,
    keep: int,
    device: str,
    block_bytes: int,
    each: Each,
    progress: Callable[[float], None],
    *,
    exact: bool,
) -> tuple[Int64, Float32]:
    """Places and scores of each text's best images, best first; -1 and -inf where there are no more."""
    dim = texts.shape[1]
    tiles = min(tiles_within(block_bytes, dim, exact=exact), -(-len(images) // TILE))
    scorer, best = Scorer(dim, tiles, device, each, exact=exact), TopK(len(texts), keep, device)
    for place in range(0, len(images), tiles * TILE):
        progress(place / len(images))
        scorer.load(images.read(slice(place, place + tiles * TILE)))
        for text in range(0, len(texts), TILE):
            best.absorb(text, scorer.score(normalised(texts[text : text + TILE])), place)
    places, scores = (kept.cpu().numpy() for kept in best.result())
    return places, scores


class TopK:
    """The `keep` best places of each text, over blocks of scores whose places ascend."""

    def __init__(self, texts: int, keep: int, device: str) -> None:
        nothing = _pack(torch.tensor([-torch.inf]), torch.tensor([PLACES])).item()
        self._keys = torch.full((texts, keep), int(nothing), dtype=torch.int64, device=device)

    def absorb(self, first_text: int, scores: Scores, first_place: int) -> None:
        """Scores of texts from `first_text` on, with images from `first_place` on."""
        keys = self._keys[first_text : first_text + len(scores.tops)]
        _absorb(keys, scores, first_place, most=scores.tops.numel() // SHARE)

    def result(self) -> tuple[Tensor, Tensor]:
        """Places and cosines, best first; place -1 and cosine -inf where there were no more."""
        places, cosines = PLACES - (self._keys & PLACES), _cosines(self._keys)
        return places.where(cosines > -torch.inf, -1), cosines


def _absorb(keys: Tensor, scores: Scores, first_place: int, most: int) -> None:
    """Puts what is good enough among the keys; by halves of the texts if that is more than `most` chunks."""
    floor, promising = _promising(scores.tops, keys)
    if len(keys) > 1 and int(promising.sum()) > most:
        for half in (slice(len(keys) // 2), slice(len(keys) // 2, None)):
            _absorb(keys[half], scores.of(half), first_place, most)
        return
    text, chunk = promising.nonzero(as_tuple=True)
    values = scores.at(text, chunk)
    which, column = (values > floor[text, None]).nonzero(as_tuple=True)
    places = first_place + chunk[which] * CHUNK + column
    _insert(keys, text[which], _pack(values[which, column], places))


def _promising(tops: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """What a score must exceed to be worth keeping, and which chunks hold such scores.

    It must beat the worst kept score of its text (an equal one loses: its place is higher). Where that says
    little, as in the first block, it must also be no worse than the `keep`-th best of the chunks' maxima.
    """
    keep = keys.shape[1]
    floor = _cosines(keys[:, -1])
    promising = tops > floor[:, None]
    if tops.shape[1] >= keep and int(promising.sum()) > len(keys) * keep:
        reached = tops.topk(keep).values[:, -1]
        floor = floor.maximum(reached.nextafter(torch.full_like(reached, -torch.inf)))
        promising = tops > floor[:, None]
    return floor, promising


def _insert(keys: Tensor, texts: Tensor, new_keys: Tensor) -> None:
    """Keeps the best of each text's old keys and those found for it; `texts` ascend."""
    keep = keys.shape[1]
    counts = texts.bincount(minlength=len(keys))
    changed = counts.nonzero()[:, 0]
    counts = counts[changed]
    owners = torch.cat([changed.repeat_interleave(keep), texts])
    ranked, order = torch.cat([keys[changed].flatten(), new_keys]).sort(descending=True)
    ranked = ranked[owners[order].argsort(stable=True)]
    ends = (counts + keep).cumsum(0)
    firsts = (ends - counts - keep)[:, None] + torch.arange(keep, device=keys.device)
    keys[changed] = ranked[firsts]


def _pack(cosines: Tensor, places: Tensor) -> Tensor:
    """Adding zero makes -0.0 equal to 0.0; the bits of floats sort as integers once negatives are flipped."""
    bits = (cosines + 0.0).view(torch.int32)
    return (_flip_negatives(bits).long() << 32) | (PLACES - places)


def _cosines(keys: Tensor) -> Tensor:
    return _flip_negatives((keys >> 32).int()).view(torch.float32)


def _flip_negatives(bits: Tensor) -> Tensor:
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@dataclass(frozen=True)
class Scores:
    """Cosines of texts with a block of images; -inf where there is no usable image."""

    tiles: Tensor  # (tiles, texts, chunks of a tile, CHUNK): images in their order
    tops: Tensor  # (texts, chunks): the best of each chunk

    def of(self, texts: slice) -> Scores:
        return Scores(self.tiles[:, texts], self.tops[texts])

    def at(self, texts: Tensor, chunks: Tensor) -> Tensor:
        """The scores of some chunks, each of some text: (chunks, CHUNK)."""
        in_tile = self.tiles.shape[2]
        return self.tiles[chunks // in_tile, texts, chunks % in_tile]


class Scorer:
    """A block of images and its scores with one tile of texts, in buffers that are filled again and again."""

    def __init__(self, dim: int, tiles: int, device: str, each: Each, *, exact: bool) -> None:
        self._each, self._exact = each, exact
        kind = torch.float64 if exact else torch.float32
        self._images = torch.zeros(tiles, TILE, dim, device=device, dtype=kind)
        self._unusable: list[Tensor] = []
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

    def _score_tile(self, number: int) -> Tensor:
        """Maxima are taken at once, while the tile is still in the cache."""
        scores = self._scores[number, : len(self._texts)]
        if self._exact:
            scores.copy_(product(self._texts, self._images[number]))
        else:
            product(self._texts, self._images[number], out=scores)
        if len(self._unusable[number]):
            scores.index_fill_(1, self._unusable[number], -torch.inf)
        return scores.view(len(scores), -1, CHUNK).amax(2)

    def _ready(self, like: Tensor, unit: Float32) -> Tensor:
        return _on(like, on_grid(unit) if self._exact else unit)


def _on(like: Tensor, array: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(array).to(like.device)


def tiles_within(block_bytes: int, dim: int, *, exact: bool) -> int:
    """How many tiles of images go into a block, so that they and their scores take up to `block_bytes`."""
    return max(1, block_bytes // (TILE * 4 * ((2 if exact else 1) * dim + TILE)))


class Each(Protocol):
    """A `map` over numbers."""

    def __call__(self, function: Callable[[int], T], numbers: Iterable[int], /) -> Iterable[T]: ...


def product(texts: Tensor, images: Tensor, out: Tensor | None = None) -> Tensor:
    """The cosines of every text with every image, into `out` if it is given."""
    if texts.device.type != "cpu":
        return torch.mm(texts, images.t(), out=out)
    into = None if out is None else out.numpy()
    return torch.from_numpy(np.matmul(texts.numpy(), images.numpy().T, out=into))


@contextmanager
def side_by_side(device: str) -> Iterator[Each]:
    """A `map` that runs on as many threads as torch may use; a card needs but one to keep it busy."""
    threads = torch.get_num_threads() if device == "cpu" else 1
    with ONE_BLAS_THREAD, full_precision(), ThreadPoolExecutor(threads) as pool:
        yield pool.map if threads > 1 else map


@contextmanager
def full_precision() -> Iterator[None]:
    """Training may have allowed TF32 products in this process; these are float32 throughout."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
