"""The order of scores that float32 cannot tell apart, settled by exact ones.

Scores come best first, each within some error of the exact one. Where two neighbours in that order are
farther apart than twice the error, their order is right, and so is that of everything before against
everything after. Only runs of scores that are closer together are scored again, exactly. So the usual query
costs a comparison for each score, and the order is the same whatever kernel computed them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.vectors import Bool, Int64

Scores = NDArray[np.floating]
Exact = Callable[[Int64, Int64], Scores]  # exact scores of some (line, column), one for each


@dataclass(frozen=True)
class Settled:
    columns: Int64  # of what was given, best first; of equal scores the lower id
    scores: Scores  # in that order: exact ones where any other was close
    unsure: Bool  # lines of which the first `wanted` may be others than are here


def settle(
    scores: Scores, ids: Int64, wanted: int, margin: float, exact: Exact, *, complete: bool
) -> Settled:
    """`scores` descend; an id below zero is nobody and stays last. `complete`: there are no others than
    these. With a margin of infinity all scores become exact."""
    there = ids >= 0
    with np.errstate(invalid="ignore"):  # of two that are nobody
        close = (scores[:, :-1] - scores[:, 1:] <= margin) & there[:, 1:]
    unsure = np.zeros(len(scores), np.bool_)
    if not complete and scores.shape[1] >= wanted:
        unsure = (scores[:, wanted - 1] - scores[:, -1] <= margin) & there[:, -1]
    columns = np.arange(scores.shape[1])[None].repeat(len(scores), axis=0)
    if not close.any() and margin < np.inf:
        return Settled(columns, scores, unsure)
    tied = there & (margin == np.inf)
    tied[:, :-1] |= close
    tied[:, 1:] |= close
    lines = np.flatnonzero(tied.any(axis=1))
    at, column = np.nonzero(tied[lines])
    settled = scores.copy()
    settled[lines[at], column] = exact(lines[at], column)
    keys = np.where(there[lines], ids[lines], np.iinfo(np.int64).max)
    columns[lines] = np.lexsort((keys, -settled[lines]), axis=1)
    settled[lines] = settled[lines[:, None], columns[lines]]
    return Settled(columns, settled, unsure)
