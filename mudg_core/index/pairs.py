"""Training pairs: each training text with q(p), its nearest image, and with nine more that the router needs.

Texts are never sampled apart from their images: what is read back here is checked pair by pair against the
cosine that the search has found, so a misaligned file cannot train an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from mudg_core.encode.shard import EmbeddingShard, gather_images
from mudg_core.errors import DataError
from mudg_core.index.coarse import Centring
from mudg_core.index.kmeans import Float64, single_on_grid
from mudg_core.index.samples import sample_lines
from mudg_core.index.vectors import Float16, Float32, Int64, normalised, normalised_usable, usable

NEIGHBORS = 10  # of each training text
TOLERANCE = 5e-3  # of a cosine of vectors in half precision
BLOCK = 65_536
HELD_OUT, MOST_HELD_OUT = 0.05, 20_000


@dataclass(frozen=True)
class Pairs:
    """Row i of `images`, `neighbors` and `cosines` belongs to training text i."""

    images: Float16
    neighbors: Int64
    cosines: Float32
    gallery: Float16  # images at random, which plain k-means and the fine code are trained on
    centring: Centring

    def write(self, folder: Path) -> None:
        for name in ("images", "neighbors", "cosines", "gallery"):
            np.save(folder / f"{name}.npy", getattr(self, name))
        save_file({"image": self.centring.image, "text": self.centring.text}, folder / "centring.safetensors")

    @classmethod
    def read(cls, folder: Path) -> Pairs:
        arrays = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ("images", "neighbors", "cosines", "gallery")
        }
        means = load_file(folder / "centring.safetensors")
        return cls(**arrays, centring=Centring(means["image"], means["text"]))


def held_out(texts: int) -> int:
    """How many pairs at the end only tell the router when to stop; k-means does not see them either."""
    return max(1, min(int(texts * HELD_OUT), MOST_HELD_OUT))


def image_sum(shard: EmbeddingShard) -> tuple[Float64, int]:
    """Sum of a shard's usable images, on a grid where sums are exact, so that shards add up in any order; and
    how many they are."""
    total, rows = np.zeros(shard.images.shape[1]), 0
    for first in range(0, len(shard.images), BLOCK):
        images, _ = normalised_usable(shard.images[first : first + BLOCK])
        total += single_on_grid(images).sum(axis=0, dtype=np.float64)
        rows += len(images)
    return total, rows


def make_pairs(
    texts: Float32,
    neighbors: Int64,
    cosines: Float32,
    shards: Sequence[EmbeddingShard],
    image_mean: Float32,
    seed: int,
) -> Pairs:
    """Gathers q(p) for each text. Texts that found nothing make it an error, not a subscript of -1."""
    if (neighbors[:, 0] < 0).any():
        lost = np.flatnonzero(neighbors[:, 0] < 0)
        raise DataError(what=f"texts {lost[:10].tolist()} have no nearest image", fix="embed the shard again")
    images = gather_images(shards, neighbors[:, 0]).astype(np.float16)
    check_aligned(texts, images, cosines[:, 0])
    lines = sample_lines([len(shard.rows) for shard in shards], len(texts), seed)
    gallery = np.concatenate([np.asarray(s.images[at]) for s, at in zip(shards, lines, strict=True)])
    gallery = gallery[np.random.default_rng(seed).permutation(np.flatnonzero(usable(gallery)))]
    text_mean = single_on_grid(texts).mean(axis=0, dtype=np.float64).astype(np.float32)
    return Pairs(images, neighbors, cosines, gallery.astype(np.float16), Centring(image_mean, text_mean))


def check_aligned(texts: Float32, images: Float16, cosines: Float32) -> None:
    """Each text and its image must have the cosine that the search has found for them."""
    for first in range(0, len(texts), BLOCK):
        part = slice(first, first + BLOCK)
        found = np.einsum("ij,ij->i", texts[part], normalised(images[part]))
        if wrong := int((np.abs(found - cosines[part]) > TOLERANCE).sum()):
            raise DataError(
                what=f"{wrong} of {len(found)} training pairs are not the pairs that were found",
                fix="run again; if it happens again, the embeddings have changed under a running build",
            )
