"""Searching an index of one or many parts: route, read cells, merge, re-rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.coarse import Coarse, Probing, vectors_read
from mudg_core.index.ivf import Hits, read_cells, sizes
from mudg_core.index.vectors import Float32, Int64

Fetch = Callable[[Int64], NDArray[np.floating]]  # image features of rows, more exact than the code

SPARE = 1.4  # hits asked for at first, for each that is wanted, where rows may occur more than once
RERANK_BYTES = 1 << 26


@dataclass(frozen=True)
class Found:
    hits: Hits
    read: Int64  # vectors that each query has read, over all parts


@dataclass(frozen=True)
class Searcher:
    """An opened index. Cells are ordered by their size over all parts, so that parts agree on what to
    read."""

    coarse: Coarse
    parts: Sequence[Any]
    fetch: Fetch | None = None
    spilled: bool = False

    @cached_property
    def sizes(self) -> Int64:
        return np.asarray(np.sum([sizes(part) for part in self.parts], axis=0))

    @property
    def images(self) -> int:
        """Vectors stored; what a query reads is a share of these."""
        return int(self.sizes.sum())

    def choose(self, queries: Float32, probing: Probing) -> Int64:
        return self.coarse.choose(queries, self.sizes, probing)

    def search(self, queries: Float32, neighbors: int, probing: Probing, rerank: int = 0) -> Found:
        """`rerank` best hits are compared again, exactly, before the best `neighbors` of them are kept."""
        queries = np.ascontiguousarray(queries, np.float32)
        cells = self.choose(queries, probing)
        wanted = max(neighbors, rerank)
        each = [read_part(part, queries, cells, wanted, self.spilled) for part in self.parts]
        hits = self.finish(queries, merge(each, wanted), neighbors, rerank)
        return Found(hits, vectors_read(cells, self.sizes))

    def finish(self, queries: Float32, hits: Hits, neighbors: int, rerank: int) -> Hits:
        if rerank and self.fetch is not None:
            hits = reranked(queries, hits, self.fetch)
        return Hits(hits.rows[:, :neighbors], hits.cosines[:, :neighbors])


def read_part(part: Any, queries: Float32, cells: Int64, wanted: int, spilled: bool) -> Hits:
    """The best `wanted` different rows in a query's cells. Copies of spilled rows crowd out others, so a few
    more are asked for, and again twice as many for the queries that this leaves short."""
    if not spilled:
        return read_cells(part, queries, cells, wanted)
    found = Hits(np.full((len(queries), wanted), -1), np.full((len(queries), wanted), -np.inf, np.float32))
    short, asked = np.arange(len(queries)), int(wanted * SPARE) + 1
    while len(short):
        raw = read_cells(part, queries[short], cells[short], asked)
        once = merge([raw], wanted)
        found.rows[short], found.cosines[short] = once.rows, once.cosines
        cut = (raw.rows[:, -1] >= 0) & (once.rows[:, -1] < 0)
        short, asked = short[cut], 2 * asked
    return found


def merge(each: Sequence[Hits], wanted: int) -> Hits:
    """The best of several parts, each row once; equal cosines go to the lower row."""
    rows = np.concatenate([hits.rows for hits in each], axis=1)
    cosines = np.concatenate([hits.cosines for hits in each], axis=1)
    cosines = np.where(_repeated(rows) | (rows < 0), -np.inf, cosines).astype(np.float32)
    return _best(rows, cosines, wanted)


def _repeated(rows: Int64) -> NDArray[np.bool_]:
    """True for every occurrence of a row in its line but the first."""
    order = np.argsort(rows, axis=1, kind="stable")
    sorted_rows = np.take_along_axis(rows, order, axis=1)
    again = np.zeros(rows.shape, bool)
    np.put_along_axis(again, order[:, 1:], sorted_rows[:, 1:] == sorted_rows[:, :-1], axis=1)
    return again


def _best(rows: Int64, cosines: Float32, wanted: int) -> Hits:
    by_row = np.argsort(rows, axis=1, kind="stable")
    rows, cosines = np.take_along_axis(rows, by_row, 1), np.take_along_axis(cosines, by_row, 1)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :wanted]
    rows, cosines = np.take_along_axis(rows, order, 1), np.take_along_axis(cosines, order, 1)
    return Hits(np.where(np.isneginf(cosines), -1, rows), cosines)


def reranked(queries: Float32, hits: Hits, fetch: Fetch) -> Hits:
    """The same rows, ordered by the cosine with what `fetch` has of them."""
    lines = max(1, RERANK_BYTES // max(1, 4 * hits.rows.shape[1] * queries.shape[1]))
    blocks = [slice(first, first + lines) for first in range(0, len(queries), lines)]
    exact = [_cosines(queries[block], hits.rows[block], fetch) for block in blocks]
    return _best(hits.rows, np.concatenate([hits.cosines[:0], *exact]), hits.rows.shape[1])


def _cosines(queries: Float32, rows: Int64, fetch: Fetch) -> Float32:
    import torch  # here: see `coarse.choose`

    features = torch.zeros(*rows.shape, queries.shape[1])
    there = rows >= 0  # no other row is asked for: row 0 may be in no shard
    features[torch.from_numpy(there)] = torch.from_numpy(np.ascontiguousarray(fetch(rows[there]))).float()
    found = torch.bmm(features, torch.from_numpy(queries).unsqueeze(2)).squeeze(2).numpy()
    norms = torch.linalg.vector_norm(features, dim=2).clamp(min=1e-12).numpy()
    return np.where(there, found / norms, -np.inf).astype(np.float32)
