"""Query-driven spill: an image also goes into the cells where texts that want it will look first.

Training texts vote: each of the images nearest to a text gets a vote for the text's first cell. The images
with the most votes for a cell that is not their own get a second home there, for a few per cent of storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mudg_core.index.vectors import Float32, Int64


@dataclass(frozen=True)
class Placement:
    """Which rows lie in which cells: `rows[i]` is in `cells[i]`. A spilled row occurs more than once."""

    rows: Int64
    cells: Int64

    def sizes(self, cells: int) -> Int64:
        return np.bincount(self.cells, minlength=cells)

    def homes(self, wanted: Int64) -> Int64:
        """Cells of each wanted row, in a last axis padded with -1; -1 and unknown rows have none."""
        order = np.argsort(self.rows, kind="stable")
        rows, cells = self.rows[order], np.append(self.cells[order], -1)
        first = np.searchsorted(rows, wanted)
        count = np.searchsorted(rows, wanted, side="right") - first
        copies = np.arange(max(1, int(count.max(initial=0))))
        places = np.minimum(first[..., None] + copies, len(rows))
        return np.where(copies < count[..., None], cells[places], -1)


def join(placements: Sequence[Placement]) -> Placement:
    """Those of several shards as one."""
    rows, cells = zip(*((placed.rows, placed.cells) for placed in placements), strict=True)
    return Placement(np.concatenate(rows), np.concatenate(cells))


def spill(home: Placement, neighbors: Int64, first: Int64, sure: Float32, share: float) -> Placement:
    """`home` and at most `share` of its rows once more, those with most votes.

    `neighbors[text]` are the rows that vote for cell `first[text]`, with weight `sure[text]`; -1 votes for
    nothing. Ties go to the lower row and cell, so that the result does not depend on the order of texts.
    """
    most = int(len(home.rows) * share)
    text, place = np.nonzero(np.isin(neighbors, home.rows))
    many = int(first.max(initial=0)) + 1
    votes, inverse = np.unique(neighbors[text, place] * many + first[text], return_inverse=True)
    weight = _exact_sums(inverse, sure[text], len(votes))
    rows, cells = votes // many, votes % many
    foreign = np.flatnonzero((home.homes(rows) != cells[:, None]).all(axis=1))
    chosen = foreign[np.argsort(-weight[foreign], kind="stable")[:most]]
    return Placement(np.concatenate([home.rows, rows[chosen]]), np.concatenate([home.cells, cells[chosen]]))


def _exact_sums(group: Int64, values: Float32, groups: int) -> Int64:
    """In whole millionths: float sums would depend on the order of texts."""
    return np.bincount(group, np.rint(values * 1e6), minlength=groups).astype(np.int64)
