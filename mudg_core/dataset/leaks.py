"""Evaluation images that also lie among a target's candidates, whose scores would be too good.

They are recognised by the file itself, or by what makes near copies (see `encode.duplicates`): a perceptual
hash within a few bits and nearly the same embedding. That rule also takes simple drawings of one thing for
one another, so a warning counts copies only where the two agree better; mere lookalikes are left out of
training all the same, as one image less costs nothing. Labels play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mudg_core.corpus.decode import Refused, decode
from mudg_core.corpus.shards import ShardSample
from mudg_core.dataset.warning import TargetWarning
from mudg_core.index.exact import exact_cosines, exact_cosines_by_row
from mudg_core.index.vectors import Bool, Float16, Float32, Float64, Int64, normalised

if TYPE_CHECKING:
    from mudg_core.encode.models import Clip

AnyFloat = Float16 | Float32

SAME_FILE, COPY, LOOKALIKE = "same file", "copy", "lookalike"
CERTAIN, PER_BIT = 0.94, 0.01  # cosine of a copy whose hash is the same, and more for each bit that differs
LEAKS, PRINTS, FEATURES = "leaks.parquet", "prints.parquet", "features.npy"
UNHASHED = 0.98  # cosine that makes a lookalike where there is no hash to compare
BLOCK, PAIRS = 1024, 65_536
SCHEMA = pa.schema(
    {"row": pa.int64(), "image": pa.string(), "why": pa.string(), "cosine": pa.float32(), "bits": pa.int32()}
)


@dataclass(frozen=True)
class Pictures:
    """What images are compared by. `hashed`: those that have a perceptual hash."""

    names: NDArray[np.object_]  # key of an evaluation image, row of a candidate
    sha256: NDArray[np.object_]
    hashes: Int64
    hashed: Bool
    features: AnyFloat

    def __getitem__(self, part: slice) -> Pictures:
        return Pictures(**{name: column[part] for name, column in vars(self).items()})

    def write(self, folder: Path) -> None:
        columns = {name: column for name, column in vars(self).items() if name != "features"}
        pq.write_table(pa.table(columns), folder / PRINTS)
        np.save(folder / FEATURES, self.features)

    @classmethod
    def read(cls, folder: Path) -> Pictures:
        table = pq.read_table(folder / PRINTS)
        names, sha256 = (np.array(table[name].to_pylist(), object) for name in ("names", "sha256"))
        hashes, hashed = (table[name].to_numpy() for name in ("hashes", "hashed"))
        return cls(names, sha256, hashes, hashed, np.load(folder / FEATURES, allow_pickle=False))


def evaluation_pictures(samples: Iterable[ShardSample], clip: Clip, batch: int) -> Pictures:
    """Of evaluation images, a batch in memory at a time; an unreadable one is compared by file alone."""
    from mudg_core.encode.duplicates import perceptual_hashes
    from mudg_core.encode.embed import chunks

    parts = []
    for group in chunks(samples, batch):
        pixels = np.stack([_pixels(sample, clip) for sample in group])
        parts.append(
            Pictures(
                np.array([sample.key for sample in group], object),
                np.array([sample.sha256 for sample in group], object),
                perceptual_hashes(pixels),
                np.asarray(pixels.any(axis=(1, 2, 3)), np.bool_),
                clip.encode_images(pixels, batch).astype(np.float16),
            )
        )
    return concat_pictures(parts)


def concat_pictures(parts: Iterable[Pictures]) -> Pictures:
    """All of them as one."""
    columns = [vars(part) for part in parts]
    return Pictures(**{name: np.concatenate([part[name] for part in columns]) for name in columns[0]})


def _pixels(sample: ShardSample, clip: Clip) -> NDArray[np.uint8]:
    try:
        return clip.pixels(decode(sample.image or b""))
    except Refused:
        return np.zeros((clip.image_size, clip.image_size, 3), np.uint8)


def candidate_pictures(images: pa.Table, gather: Callable[[Int64], Float32]) -> Iterator[Pictures]:
    """Of candidates (columns row, sha256, phash), a block at a time."""
    for first in range(0, images.num_rows, BLOCK):
        part = images.slice(first, BLOCK)
        rows, hashes = part.column("row").to_numpy(), part.column("phash")
        yield Pictures(
            rows.astype(object),
            np.array(part.column("sha256").to_pylist(), object),
            hashes.fill_null(0).to_numpy(),
            hashes.is_valid().to_numpy(),
            normalised(gather(rows)),
        )


def find_leaks(candidates: Iterable[Pictures], evaluation: Pictures) -> pa.Table:
    """One line for each candidate that is an evaluation image: row, that image, why, cosine and bits."""
    files = {file: place for place, file in reversed(list(enumerate(evaluation.sha256.tolist()))) if file}
    lines = [line for block in candidates for line in _leaks(block, evaluation, files)]
    return pa.Table.from_pylist(lines, SCHEMA)


def _leaks(block: Pictures, evaluation: Pictures, files: dict[str, int]) -> Iterator[dict[str, object]]:
    """The worst that can be said of each candidate: the same file, then a copy, then the nearest."""
    worst: dict[int, tuple[str, int, float, int | None]] = {}
    for first in range(0, len(evaluation.names), BLOCK):
        for mine, theirs, cosine, bits in _alike(block, evaluation[first : first + BLOCK]):
            copied = bits is not None and cosine >= CERTAIN + PER_BIT * bits
            pair = (COPY if copied else LOOKALIKE, first + theirs, cosine, bits)
            worst[mine] = min(worst.get(mine, pair), pair, key=lambda it: (it[0] != COPY, -it[2], it[1]))
    for mine, file in enumerate(block.sha256.tolist()):
        if file in files:
            worst[mine] = (SAME_FILE, files[file], 1.0, 0)
    for mine, (why, theirs, cosine, bits) in sorted(worst.items()):
        row, image = int(block.names[mine]), str(evaluation.names[theirs])
        yield {"row": row, "image": image, "why": why, "cosine": cosine, "bits": bits}


def _alike(mine: Pictures, theirs: Pictures) -> Iterator[tuple[int, int, float, int | None]]:
    """Pairs that could be one picture, by hash and embedding, or by embedding where a hash is missing.

    Cosines are exact, so that a pair on the edge is on the same side of it with any BLAS kernel.
    """
    from mudg_core.encode.duplicates import MAX_BITS, MIN_COSINE

    # unsigned, as the bits of a negative number are counted without its sign
    bits = np.bitwise_count((mine.hashes[:, None] ^ theirs.hashes[None]).view(np.uint64))
    hashed = mine.hashed[:, None] & theirs.hashed[None]
    left, right = np.nonzero((bits <= MAX_BITS) & hashed)
    cosines = _cosines(mine.features, theirs.features, left, right)
    for place in np.flatnonzero(cosines >= MIN_COSINE).tolist():
        one, other = int(left[place]), int(right[place])
        yield one, other, float(cosines[place]), int(bits[one, other])
    unhashed = np.flatnonzero(~mine.hashed)
    every = exact_cosines(mine.features[unhashed], theirs.features)
    for one, other in np.argwhere((every >= UNHASHED) & theirs.hashed).tolist():
        yield int(unhashed[one]), other, float(every[one, other]), None


def _cosines(mine: AnyFloat, theirs: AnyFloat, left: Int64, right: Int64) -> Float64:
    parts = [slice(first, first + PAIRS) for first in range(0, len(left), PAIRS)]
    each = [exact_cosines_by_row(mine[left[part]], theirs[right[part]]) for part in parts]
    return np.concatenate([np.zeros(0), *each])


def without_rows(hits: pa.Table, rows: Int64 | Sequence[int]) -> pa.Table:
    """Hits without those of some rows; the ranks of the others stay as the search gave them."""
    return hits.filter(pa.array(~np.isin(hits.column("row").to_numpy(), np.asarray(rows, np.int64))))


def warn_of_leaks(leaks: pa.Table, excluded: bool) -> list[TargetWarning]:
    """One warning for all of them; lookalikes are no ground for one."""
    sure = leaks.filter(pc.not_equal(leaks.column("why"), LOOKALIKE))
    if not sure.num_rows:
        return []
    count, pictures = sure.num_rows, len(sure.column("image").unique())
    what = (
        "They were left out of training."
        if excluded
        else "They may be in the training set, and then scores are too good: set dataset.exclude_leaks."
    )
    message = (
        f"{count} candidate images are copies of {pictures} evaluation images, by file, or by look and "
        f"embedding. {what} Copies elsewhere in the corpus were not looked for."
    )
    return [TargetWarning("leaks", (), message, {"rows": count, "images": pictures})]
