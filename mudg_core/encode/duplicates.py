"""Near copies of an image within a shard: alike to the eye (perceptual hash) and to the model (embedding).

A hash alone takes all blank pictures for one; an embedding alone takes two shots of one thing for one.
Copies are told as the first of them, so that keeping one of each is a comparison of two columns.

Both are the same on every CPU: hashes are made of whole numbers, which no product rounds, and products of
half precision are exact in double.
"""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

Int64 = NDArray[np.int64]

SIDE, KEPT = 32, 8  # pixels that are looked at, and waves kept, in each direction
MAX_BITS = 7  # of 64 that copies may differ in: with eight tables of eight bits, all such pairs share one
MIN_COSINE = 0.95
BLOCK = 1024
FINE = 4096  # the height of a wave: with it, sums stay below 2^53, and none of its values is near a half


def _waves() -> torch.Tensor:
    """The first waves of a discrete cosine transform, one a line, in whole numbers."""
    place = (torch.arange(SIDE, dtype=torch.float64) + 0.5) * torch.pi / SIDE
    return torch.round(FINE * torch.cos(torch.arange(KEPT, dtype=torch.float64)[:, None] * place[None]))


WAVES = _waves()
LUMA = torch.tensor([299.0, 587.0, 114.0], dtype=torch.float64)


def perceptual_hashes(pixels: NDArray[np.uint8]) -> Int64:
    """64 bits for each image (n, h, w, 3): which of its slowest waves are above their median."""
    if not len(pixels):
        return np.zeros(0, np.int64)
    waves = (WAVES @ _small(pixels) @ WAVES.T).reshape(len(pixels), KEPT * KEPT)
    bits = waves > waves[:, 1:].median(dim=1, keepdim=True).values  # the first is the brightness
    hashes: Int64 = np.packbits(bits.numpy(), axis=1).view(">i8")[:, 0].astype(np.int64)
    return hashes


def _small(pixels: NDArray[np.uint8]) -> torch.Tensor:
    """Images (n, SIDE, SIDE) in thousandths of a grey, rounded: the mean of each window. Sums of bytes are
    exact in single precision up to windows of 256 x 256."""
    count, height, width, _ = pixels.shape
    down, across = _windows(height), _windows(width)
    rows = (down @ torch.from_numpy(pixels).float().reshape(count, height, -1)).reshape(count, SIDE, width, 3)
    sums = torch.einsum("jw,niwc->nijc", across, rows).double() @ LUMA
    return torch.round(sums / (down.sum(dim=1)[:, None] * across.sum(dim=1)))


def _windows(size: int) -> torch.Tensor:
    """Which pixels are in which window, as ones and zeros: equal parts, with every pixel they touch."""
    pixel, window = torch.arange(size), torch.arange(SIDE)[:, None]
    return (((pixel + 1) * SIDE > window * size) & (pixel * SIDE < (window + 1) * size)).float()


def first_copies(hashes: Int64, features: Any) -> Int64:
    """For each image the place of the first near copy of it, which is its own if there is none before."""
    distinct, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    if len(distinct) == 0:
        return np.zeros(0, np.int64)
    order = np.argsort(first)  # so that a lower number is an earlier image
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    earliest = _roots(_nearest_before(distinct[order]))
    leader: Int64 = first[order][earliest][rank[number]]
    return np.where(_alike(features, leader), leader, np.arange(len(hashes)))


def _nearest_before(hashes: Int64) -> Int64:
    """The lowest-numbered hash within MAX_BITS of each; block by block, as there may be many pairs."""
    codes = np.ascontiguousarray(hashes.astype(">i8")).view(np.uint8).reshape(-1, 8)
    index = faiss.IndexBinaryMultiHash(64, 8, 8)
    index.add(codes)
    nearest = np.arange(len(hashes))
    for start in range(0, len(codes), BLOCK):
        limits, _, near = index.range_search(codes[start : start + BLOCK], MAX_BITS + 1)
        limits = limits.astype(np.int64)
        nearest[start : start + BLOCK] = np.minimum.reduceat(near, limits[:-1])  # each finds itself at least
    return nearest


def _roots(parents: Int64) -> Int64:
    """Follows every chain to its end; a parent is never later than its child, so there is one."""
    while (parents != (further := parents[parents])).any():
        parents = further
    return parents


def _alike(features: Any, leader: Int64) -> NDArray[np.bool_]:
    """Whether the embedding of each image is that of its leader, nearly."""
    same: NDArray[np.bool_] = leader == np.arange(len(leader))
    others = np.flatnonzero(~same)
    for start in range(0, len(others), BLOCK):
        here = others[start : start + BLOCK]
        same[here] = half_cosines(features[here], features[leader[here]]) >= MIN_COSINE
    return same


def half_cosines(left: Any, right: Any) -> NDArray[np.float64]:
    """Of vectors in half precision, as features are stored: products of these are multiples of 2^-48, so sums
    are exact in double, whatever adds them up."""
    halves = (np.asarray(part, np.float16).astype(np.float64) for part in (left, right))
    return np.asarray(np.einsum("ij,ij->i", *halves), dtype=np.float64)
