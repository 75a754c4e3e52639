"""What an index is trained, chosen and measured with.

Captions that train the index, that choose its variant and that measure it are kept apart for good, and so are
images that measure it: what chooses must not have trained, and what is reported must have done neither.

Each training text is paired with q(p), its nearest image, and with nine more that the router needs. Texts are
never sampled apart from their images: what is read back here is checked pair by pair against the cosine that
the search has found, so a misaligned file cannot train an index.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from mudg_core.encode.shard import EmbeddingShard, gather_images
from mudg_core.errors import DataError
from mudg_core.index.coarse import Centring
from mudg_core.index.kmeans import SAMPLED, Clustering, PairShard, cut, initial, single_on_grid
from mudg_core.index.vectors import Float16, Float32, Float64, Int64, normalised, normalised_usable, usable

LARGEST_SHARE = 10  # of a small corpus, each kind of measuring query takes a tenth at most
NEIGHBORS = 10  # of each training text
TOLERANCE = 5e-3  # of a cosine of vectors in half precision
BLOCK = 65_536
HELD_OUT, MOST_HELD_OUT = 0.05, 20_000


@dataclass(frozen=True)
class Counts:
    """How many of each kind; they lie one after the other in this order."""

    training: int
    tuning: int
    report: int
    images: int

    def part(self, kind: str) -> slice:
        kinds, sizes = list(vars(self)), list(vars(self).values())
        place = kinds.index(kind)
        return slice(sum(sizes[:place]), sum(sizes[: place + 1]))


@dataclass(frozen=True)
class Samples:
    vectors: Float16
    rows: Int64  # the corpus row that each comes from
    counts: Counts

    def of(self, kind: str) -> Float32:
        return normalised(self.vectors[self.counts.part(kind)])

    def write(self, folder: Path) -> None:
        np.save(folder / "vectors.npy", self.vectors)
        np.save(folder / "rows.npy", self.rows)
        (folder / "counts.json").write_text(json.dumps(asdict(self.counts)))

    @classmethod
    def read(cls, folder: Path) -> Samples:
        counts = Counts(**json.loads((folder / "counts.json").read_text()))
        vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        return cls(vectors, np.load(folder / "rows.npy", allow_pickle=False), counts)


def draw(shards: Sequence[EmbeddingShard], wanted: Counts, seed: int) -> Samples:
    """Captions and images at random, in random order."""
    sizes = [len(shard.rows) for shard in shards]
    most = max(1, sum(sizes) // LARGEST_SHARE)
    tuning, report, images = (min(n, most) for n in (wanted.tuning, wanted.report, wanted.images))
    captions, captions_from = _take(shards, sizes, wanted.training + tuning + report, seed, "texts")
    pictures, pictures_from = _take(shards, sizes, images, seed + 1, "images")
    training = len(captions) - tuning - report
    if training < 2:
        raise DataError(
            what=f"{len(captions)} usable captions are too few to train and to measure an index",
            fix="add corpus rows",
        )
    counts = Counts(training, tuning, report, len(pictures))
    return Samples(
        np.concatenate([captions, pictures]), np.concatenate([captions_from, pictures_from]), counts
    )


def _take(
    shards: Sequence[EmbeddingShard], sizes: Sequence[int], most: int, seed: int, side: str
) -> tuple[Float16, Int64]:
    chosen = sample_lines(sizes, most, seed)
    vectors = [np.asarray(getattr(s, side)[lines]) for s, lines in zip(shards, chosen, strict=True)]
    rows = [shard.rows[lines] for shard, lines in zip(shards, chosen, strict=True)]
    features, origin = np.concatenate(vectors), np.concatenate(rows)
    good = np.flatnonzero(usable(features))
    order = np.random.default_rng(seed).permutation(good)
    return features[order].astype(np.float16), origin[order]


def sample_lines(shard_sizes: Sequence[int], most: int, seed: int) -> list[Int64]:
    """Which lines of each shard to take: all, or `most` of them at random."""
    total = sum(shard_sizes)
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(np.random.default_rng(seed).choice(total, size=most, replace=False))
    ends = np.cumsum(shard_sizes)
    parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    return [part - (end - size) for part, end, size in zip(parts, ends, shard_sizes, strict=True)]


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
        computed = np.einsum("ij,ij->i", texts[part], normalised(images[part]))
        if wrong := int((np.abs(computed - cosines[part]) > TOLERANCE).sum()):
            raise DataError(
                what=f"{wrong} of {len(computed)} training pairs have another cosine than the search found",
                fix="run again; if it happens again, the embeddings have changed during a running build",
            )


@dataclass(frozen=True)
class TrainingPairs:
    """The pairs of one variant, still on disk: nothing is loaded but the shard that is asked for."""

    variant: str
    pairs: Pairs
    samples: Samples

    @property
    def centring(self) -> Centring:
        """Only the variants that centre do; for the others nothing is taken away."""
        means = self.pairs.centring
        return means if self.variant == "centred" else Centring(means.image * 0, means.text * 0)

    @property
    def images(self) -> Float16:
        """Plain k-means learns from images as the corpus has them, the paired ones from those texts find. The
        last texts are left for the router, which must not be judged on what shaped its cells."""
        return self.pairs.gallery if self.variant == "kmeans" else self.paired

    @property
    def paired(self) -> Float16:
        return self.pairs.images[: len(self.pairs.images) - held_out(len(self.pairs.images))]

    def shards(self, most: int) -> list[slice]:
        return cut(len(self.images), most)

    def load(self, part: slice) -> PairShard:
        images = self.centring.images(normalised(self.images[part]))
        if self.variant == "kmeans":
            return PairShard(images, images, self._sample(part))
        return PairShard(images, self.centring.texts(normalised(self._texts(part))))

    def _sample(self, part: slice) -> tuple[Float32, Float32]:
        """Plain k-means trains on no texts; those of as many pairs tell whether queries find their cell."""
        some = slice(part.start, min(part.stop, len(self.paired)), SAMPLED)
        return normalised(self.paired[some]), normalised(self._texts(some))

    def _texts(self, part: slice) -> Float16:
        texts: Float16 = self.samples.vectors[self.samples.counts.part("training")][part]
        return texts

    def start(self, cells: int, seed: int) -> Clustering:
        """Random images."""
        chosen: Float32 = normalised(np.asarray(self.images[initial(self.images, cells, seed)]))
        return Clustering(self.centring.images(chosen), ())
