"""Two classes that are nearly one: their plain prompts retrieve the same images, or each fits the other's.

Plain prompts and not augmented ones: descriptors make unlike things meet ("which has wheels"). Images in
common show synonyms in a small corpus. In a large one two synonyms may retrieve different images of the same
thing, so it also counts how near the images of one are to the prompt of the other. All products are exact,
so that pairs on the edge are confusable on every CPU or on none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from mudg_core.dataset.absent_classes import hit_features
from mudg_core.dataset.candidates import Features
from mudg_core.dataset.warning import TargetWarning
from mudg_core.index.exact import exact_cosines, exact_cosines_by_row, on_grid
from mudg_core.index.vectors import Float32, Float64, Int64

SHARED = 0.4  # of the hits of plain prompts
LIKENESS = 0.9
BLOCK = 512  # classes that are compared with all others at a time


@dataclass(frozen=True)
class ConfusablePair:
    """Two labels. `likeness` is 1 where each prompt is as near to the other's images as to its own, and 0
    where it is no nearer than to any image. `swapped`: candidates of one that were labelled as the other,
    as a share of all candidates of both."""

    one: int
    other: int
    cosine: float
    shared: float
    likeness: float
    swapped: float = 0.0


def find_confusable_classes(
    labels: Float32, hits: Int64, means: Float32, mean_image: Float32
) -> list[ConfusablePair]:
    """Pairs of labels that share hits of their plain prompts, or fit each other's, the most alike first.

    `means` are the mean images of each label's hits (see `mean_images`), `mean_image` that of the corpus.
    """
    pairs = []
    for first, shared in _shared(hits):
        part = slice(first, first + BLOCK)
        likeness = _likeness(labels, means, mean_image, part)
        alike = (shared >= SHARED) | (likeness >= LIKENESS)
        alike &= np.arange(len(labels)) > np.arange(len(labels))[part, None]
        for one, other in np.argwhere(alike).tolist():
            cosine = float(exact_cosines_by_row(labels[first + one], labels[other]))
            numbers = (cosine, float(shared[one, other]), float(likeness[one, other]))
            pairs.append(ConfusablePair(first + one, other, *(round(number, 4) for number in numbers)))
    return sorted(pairs, key=lambda pair: (-pair.shared, -pair.likeness, pair.one, pair.other))


def mean_images(hits: Int64, images: Features) -> Float32:
    """The mean image of each label's hits; NaN for a label that has none."""
    means = []
    for _, there, pictures in hit_features(hits, images):
        with np.errstate(invalid="ignore"):
            means.append(on_grid(pictures).sum(axis=1) / there.sum(axis=1, keepdims=True))
    return np.concatenate(means).astype(np.float32)


def _shared(hits: Int64) -> Iterator[tuple[int, Float32]]:
    """For a block of labels at a time: the share of hits that each has in common with every label."""
    from scipy.sparse import csr_array  # here: it takes long to load

    label, place = np.nonzero(hits >= 0)
    rows, column = np.unique(hits[label, place], return_inverse=True)
    ones = np.ones(len(label), np.float32)
    known: Any = csr_array((ones, (label, column)), shape=(len(hits), max(1, len(rows))))
    counts = np.maximum(1, (hits >= 0).sum(axis=1))
    for first in range(0, len(hits), BLOCK):
        part = slice(first, first + BLOCK)
        both = (known[part] @ known.T).toarray()
        yield first, both / np.minimum(counts[part, None], counts)


def _likeness(labels: Float32, means: Float32, mean_image: Float32, part: slice) -> Float64:
    """The lower of the two directions: a prompt that is near to everything is confused with nothing."""
    usual = exact_cosines_by_row(labels, mean_image)
    own = exact_cosines_by_row(labels, means) - usual
    own = np.where(own > 0, own, np.inf)
    # every prompt on images of the part, and prompts of the part on every image
    theirs = (exact_cosines(labels, means[part]) - usual[:, None]) / own[:, None]
    mine = (exact_cosines(labels[part], means) - usual[part, None]) / own[part, None]
    return np.nan_to_num(np.minimum(theirs.T, mine), nan=0.0)


def count_swaps(pairs: Sequence[ConfusablePair], hits: pa.Table, labelled: pa.Table) -> list[ConfusablePair]:
    """The same pairs with how often candidates of one (`hits`, of all queries) were labelled as the other."""
    row, label = np.unique(np.stack([hits.column(name).to_numpy() for name in ("row", "label")]), axis=1)
    rows, labels = (labelled.column(name).to_numpy() for name in ("row", "label"))
    order = np.argsort(rows)
    place = order[np.minimum(np.searchsorted(rows, row, sorter=order), len(rows) - 1)]
    known = rows[place] == row
    label, assigned = label[known], labels[place][known]

    def swapped(pair: ConfusablePair) -> float:
        of_one, of_other = label == pair.one, label == pair.other
        swaps = (of_one & (assigned == pair.other)).sum() + (of_other & (assigned == pair.one)).sum()
        return round(float(swaps / max(1, (of_one | of_other).sum())), 4)

    return [replace(pair, swapped=swapped(pair)) for pair in pairs]


def warn_of_confusable_classes(names: Sequence[str], pairs: Sequence[ConfusablePair]) -> list[TargetWarning]:
    warnings = []
    for pair in pairs:
        one, other = names[pair.one], names[pair.other]
        numbers = {name: getattr(pair, name) for name in ("cosine", "shared", "likeness", "swapped")}
        warnings.append(TargetWarning("twins", (one, other), _message(one, other, pair), numbers))
    return warnings


def _message(one: str, other: str, pair: ConfusablePair) -> str:
    why = (
        f"{100 * pair.shared:.0f} % of what one finds the other finds too"
        if pair.shared >= SHARED
        else f"each is {100 * pair.likeness:.0f} % as near to the other's images as to its own"
    )
    return (
        f"'{one}' and '{other}' are nearly one class: {why}, and {100 * pair.swapped:.0f} % of their "
        "candidates were labelled as the other. Merge them, or give them names that tell them apart."
    )
