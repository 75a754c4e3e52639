"""Nearest images through an index instead of exactly: q(p) for most texts, bootstrapped from a few.

Exact search is the largest cost of an index at the scale of the paper. A tenth of the texts, searched
exactly, train centroids that are good enough to find most of the other nearest images for a tenth of the
work.
"""

from __future__ import annotations

import numpy as np

from mudg_core.encode.shard import EmbeddingShard
from mudg_core.index.blocks import blocks
from mudg_core.index.coarse import Coarse, Probing
from mudg_core.index.ivf import blank, populate
from mudg_core.index.neighbors import Neighbors
from mudg_core.index.part import NOWHERE, assign_shard
from mudg_core.index.search import Searcher
from mudg_core.index.vectors import Float32, normalised

BLOCK = 8192  # images added at once


def nearest_through(
    guide: Coarse, texts: Float32, shard: EmbeddingShard, keep: int, share: float
) -> Neighbors:
    """The nearest images of a shard that lie in the cells a text reads first, a `share` of all cells."""
    cells = assign_shard(guide, shard).cells
    good = np.flatnonzero(cells != NOWHERE)
    index = blank("flat", guide.cells, np.zeros((0, guide.dim), np.float32))
    added = (good[first : first + BLOCK] for first in range(0, len(good), BLOCK))
    populate(index, ((shard.rows[at], cells[at], normalised(shard.images[at])) for at in added))
    probing = Probing(max(1, round(guide.cells * share)))
    searcher = Searcher(guide, [index])
    cut = blocks(len(texts), 16 * (probing.probes + guide.dim))
    found = [searcher.search(texts[part], keep, probing, exact=True).hits for part in cut]
    rows = np.concatenate([hits.rows for hits in found])
    return Neighbors(rows, np.concatenate([hits.cosines for hits in found]))
