"""The vectors of a part by their places in it, and exact scores of queries with them.

A place is what faiss gives for a hit: the number of its cell, and its position there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from mudg_core.index.decode import decoder
from mudg_core.index.exact_products import float32_error, on_grid
from mudg_core.index.ivf import sizes
from mudg_core.index.vectors import Float32, Int64

POSITION = (1 << 32) - 1
FEW = 32
VALUES = 1 << 18  # decoded at once: copies stay in the cache
CODE_GRID = 2.0**24  # sums of products stay exact for vectors of up to eight times unit length
DECODING = 2.0**-21  # of a range: what float32 rounds away in decoding


class Stored:
    """A part whose lists are looked at in place; they must not change meanwhile. Queries are unit vectors:
    products with longer ones are not exact."""

    def __init__(self, index: Any) -> None:
        self.index, self._lists = index, dict[int, tuple[Int64, NDArray[np.uint8]]]()
        self._decoder = decoder(index)
        self._flat = isinstance(index, faiss.IndexIVFFlat)
        grid = 0.0 if self._flat else float(np.sqrt(index.d)) / CODE_GRID
        self._error = (
            float32_error(index.d + 2) * self._decoder.longest + DECODING * self._decoder.ranges + grid
        )

    @cached_property
    def sizes(self) -> Int64:
        """How many vectors each cell holds."""
        return sizes(self.index)

    def error(self, queries: Float32) -> float:
        """How far a score of faiss can be from the exact one, and that from what float32 makes of it."""
        longest = float(np.sqrt(np.einsum("ij,ij->i", queries, queries).max(initial=1.0)))
        return longest * 1.001 * (self._error + 2.0**-24)

    def rows(self, places: Int64) -> Int64:
        """The row of each place; -1 for nobody."""
        found = np.full(places.shape, -1, np.int64)
        flat, into = places.ravel(), found.reshape(-1)
        for cell, at in _by_cell(flat):
            into[at] = self._list(cell)[0][flat[at] & POSITION]
        return found

    def scores(self, queries: Float32, lines: Int64, places: Int64) -> Float32:
        """The exact score of each place with the query of the same line, rounded to float32."""
        step = max(1, VALUES // self.index.d)
        parts = [slice(first, first + step) for first in range(0, len(places), step)]
        each = [self._scores(queries[lines[part]], places[part]) for part in parts]
        return np.concatenate([np.zeros(0, np.float32), *each])

    def _scores(self, queries: Float32, places: Int64) -> Float32:
        codes = np.empty((len(places), self.index.code_size), np.uint8)
        for cell, at in _by_cell(places):
            codes[at] = self._list(cell)[1][places[at] & POSITION]
        vectors = self._decoder.decode(codes)
        grid = on_grid(vectors) if self._flat else np.rint(np.float64(vectors) * CODE_GRID) / CODE_GRID
        return np.asarray(np.einsum("ij,ij->i", on_grid(queries), grid) + 0.0, dtype=np.float32)

    def _list(self, cell: int) -> tuple[Int64, NDArray[np.uint8]]:
        """Rows and codes of a cell, without a copy."""
        if cell not in self._lists:
            lists = self.index.invlists
            size = lists.list_size(cell)
            codes = faiss.rev_swig_ptr(lists.get_codes(cell), size * self.index.code_size)
            rows = faiss.rev_swig_ptr(lists.get_ids(cell), size)
            self._lists[cell] = rows, codes.reshape(size, -1)
        return self._lists[cell]


def _by_cell(places: Int64) -> Iterator[tuple[int, Int64 | slice]]:
    """The cells that occur, each with where it does; a few places one by one, which is quicker."""
    if len(places) <= FEW:
        yield from ((p >> 32, slice(at, at + 1)) for at, p in enumerate(places.tolist()) if p >= 0)
        return
    cells = places >> 32
    order = np.argsort(cells, kind="stable")
    order = order[np.searchsorted(cells[order], 0) :]
    for at in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        if len(at):
            yield int(cells[at[0]]), at
