"""Does the corpus have a class at all? A search always returns something: the test is what its captions say.

The images that the prompt of an absent class retrieves are those of its neighbours, and look right to the
model; but their captions are about other things. How much of that is usual differs from corpus to corpus, so
random captions of the same corpus go through the same search, blind to their own image and its copies. A
class that its captions support less than nearly all of those is absent. Cosines and their means are exact, so
that the same classes are absent on every CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mudg_core.dataset.candidates import Features
from mudg_core.dataset.warning import TargetWarning
from mudg_core.index.exact import exact_cosines_by_row, on_grid
from mudg_core.index.vectors import Bool, Float32, Int64, normalised

HITS = 64  # of a plain prompt that are looked at
NEAREST = 8  # captions that count: a class may be rarer than the hits of its query are many
COPY = 0.95  # cosine of images that are one picture, as for near-duplicates
BLOCK = 128  # queries whose hits are in memory together
VECTORS = 16_384  # of which a mean is taken, in memory together


@dataclass(frozen=True)
class Presence:
    """Per class: how well captions support it, and the share of random captions that have no more."""

    support: Float32
    share: Float32

    def absent(self, below: float) -> Bool:
        return np.asarray(self.share < below)


def presence(labels: Float32, hits: Int64, background: Float32, centre: Float32, texts: Features) -> Presence:
    """`hits` are the rows that each plain prompt retrieved, best first and -1 where there are no more;
    `background` is the support of random captions. The share is never zero, as that of a rank test."""
    own = support(labels, hits, texts, centre)
    known = np.sort(background[np.isfinite(background)])
    share = (1 + np.searchsorted(known, own, side="right")) / (1 + len(known))
    return Presence(own, share.astype(np.float32))


def support(queries: Float32, hits: Int64, texts: Features, centre: Float32) -> Float32:
    """The mean cosine of each query with the captions, among those of its hits, that are nearest to it.

    All are taken relative to `centre`, the mean caption: what all captions share tells nothing. A missing
    caption counts as one that has nothing to do with the query.
    """
    relative = normalised(queries - centre)
    means = np.empty(len(queries), np.float32)
    for part, there, captions in hit_features(hits, texts):
        unit = normalised((captions - centre).reshape(-1, captions.shape[2])).reshape(captions.shape)
        cosines = np.where(there, exact_cosines_by_row(unit, relative[part, None]), 0)
        best = -np.sort(-on_grid(cosines), axis=1)[:, :NEAREST]
        means[part] = best.sum(axis=1) / NEAREST
    return means


def background_support(
    captions: Float32, rows: Int64, hits: Int64, keep: int, images: Features, texts: Features, centre: Float32
) -> Float32:
    """The same for captions of the corpus, whose own `rows` and their copies are left out of their hits.

    A caption that this leaves without enough hits says nothing, and has NaN.
    """
    others = without_copies(rows, hits, keep, images)
    means = support(captions, others, texts, centre)
    means[(others >= 0).sum(axis=1) < min(NEAREST, keep)] = np.nan
    return means


def without_copies(rows: Int64, hits: Int64, keep: int, images: Features) -> Int64:
    """The first `keep` hits of each query that are no copy of the image that the query belongs to."""
    kept = np.full((len(hits), keep), -1, np.int64)
    for part, there, pictures in hit_features(hits, images):
        alike = exact_cosines_by_row(pictures, normalised(images(rows[part]))[:, None]) >= COPY
        good = there & ~alike & (hits[part] != rows[part, None])
        order = np.argsort(~good, axis=1, kind="stable")[:, :keep]
        first = np.where(np.take_along_axis(good, order, 1), np.take_along_axis(hits[part], order, 1), -1)
        kept[part, : first.shape[1]] = first
    return kept


def mean_vector(vectors: Float32) -> Float32:
    """Sums on the grid are exact, so it does not matter how many vectors are added at a time."""
    parts = range(0, len(vectors), VECTORS)
    total = sum(on_grid(vectors[first : first + VECTORS]).sum(axis=0) for first in parts)
    return np.asarray(total / len(vectors), np.float32)


def warn_of_absent(names: Sequence[str], presence: Presence, below: float) -> list[TargetWarning]:
    return [
        TargetWarning(
            "absent",
            (names[label],),
            _message(names[label], float(presence.share[label])),
            {name: round(float(getattr(presence, name)[label]), 4) for name in ("share", "support")},
        )
        for label in np.flatnonzero(presence.absent(below)).tolist()
    ]


def _message(name: str, share: float) -> str:
    return (
        f"The corpus seems to have no '{name}': the captions of its best images are less like it than those "
        f"of {100 * (1 - share):.0f} % of random captions are like them. Add images of it to the corpus, "
        "call it as captions would, or leave the class out."
    )


def hit_features(rows: Int64, features: Features) -> Iterator[tuple[slice, Bool, Float32]]:
    """Unit features of a table of rows, some lines at a time: which lines, which places hold a row, and the
    features, zero where there is none."""
    for first in range(0, len(rows), BLOCK):
        part = slice(first, first + BLOCK)
        there = rows[part] >= 0
        known = normalised(features(rows[part][there]))
        block = np.zeros((*there.shape, known.shape[1]), np.float32)
        block[there] = known
        yield part, there, block
