"""Which captions train the index, which choose its variant, which measure it; and images that measure it too.

They are kept apart for good: what chooses must not have trained, and what is reported must have done neither.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mudg_core.encode.shard import EmbeddingShard
from mudg_core.errors import DataError
from mudg_core.index.vectors import Float16, Float32, Int64, normalised, usable

LARGEST_SHARE = 10  # of a small corpus, each kind of measuring query takes a tenth at most


@dataclass(frozen=True)
class Counts:
    """How many of each kind; they lie one after the other in this order."""

    training: int
    tuning: int
    report: int
    images: int

    def part(self, kind: str) -> slice:
        sizes = asdict(self)
        first = sum(size for name, size in sizes.items() if list(sizes).index(name) < list(sizes).index(kind))
        return slice(first, first + sizes[kind])


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
    found, origin = np.concatenate(vectors), np.concatenate(rows)
    good = np.flatnonzero(usable(found))
    order = np.random.default_rng(seed).permutation(good)
    return found[order].astype(np.float16), origin[order]


def sample_lines(shard_sizes: Sequence[int], most: int, seed: int) -> list[Int64]:
    """Which lines of each shard to take: all, or `most` of them at random."""
    total = sum(shard_sizes)
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(np.random.default_rng(seed).choice(total, size=most, replace=False))
    ends = np.cumsum(shard_sizes)
    parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    return [part - (end - size) for part, end, size in zip(parts, ends, shard_sizes, strict=True)]
