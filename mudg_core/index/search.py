"""Searching an index of one or many parts: route, read cells, merge, re-rank.

faiss computes scores in float32, by instructions that differ from CPU to CPU. They nominate; wherever two are
too close to tell, exact ones decide (`exact.settle`). So which rows are found, and in which order, depends on
the index and the query alone: not on CPU, threads, batches, or on how many parts there are. An exact score is
rounded to float32, and of equal ones the lower row comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.coarse import Coarse
from mudg_core.index.exact import exact_cosines_by_row, float32_error, settle
from mudg_core.index.ivf import Hits, Stored, read_places, sizes
from mudg_core.index.routing import Probing, vectors_read
from mudg_core.index.vectors import Float32, Int64, as_unit, blocks, normalised

SPARE = 1.4  # hits read at first for each that is wanted, where rows may occur more than once
MORE = 4  # hits read beside those that are wanted, in case they tie with the last one
HIT_BYTES = 128  # that a hit takes while it is compared
Fetch = Callable[[Int64], NDArray[np.floating]]  # image features of rows, more exact than the code
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

    @cached_property
    def _stored(self) -> list[Stored]:
        return [Stored(part) for part in self.parts]

    @property
    def images(self) -> int:
        """Vectors stored; what a query reads is a share of these."""
        return int(self.sizes.sum())

    def unit(self, queries: Float32) -> Float32:
        """As they are searched for: exact products are those of unit vectors."""
        self.coarse.check(queries)
        return as_unit(np.ascontiguousarray(queries, np.float32))

    def choose(self, queries: Float32, probing: Probing) -> Int64:
        return self.coarse.choose(queries, self.sizes, probing)

    def search(
        self, queries: Float32, neighbors: int, probing: Probing, rerank: int = 0, *, exact: bool = False
    ) -> Found:
        """`rerank` best hits are compared again with exact features, before the best `neighbors` of them are
        kept. Rows and their order are exact in any case; with `exact` all cosines are too."""
        queries = self.unit(queries)
        cells = self.choose(queries, probing)
        again = rerank > 0 and self.fetch is not None
        wanted = max(neighbors, rerank)
        hits = read_parts(self._stored, queries, cells, wanted, self.spilled, exact=exact and not again)
        return Found(self.finish(queries, hits, neighbors, rerank, exact), vectors_read(cells, self.sizes))

    def finish(self, queries: Float32, hits: Hits, neighbors: int, rerank: int, exact: bool = True) -> Hits:
        if rerank and self.fetch is not None:
            hits = reranked(queries, hits, self.fetch, exact)
        return Hits(hits.rows[:, :neighbors], hits.cosines[:, :neighbors])


@dataclass(frozen=True)
class _Wanted:
    """What is looked for in every part."""

    count: int  # of different rows
    spilled: bool  # rows may occur more than once
    margin: float  # scores closer together than this may be in the wrong order

    @property
    def first_length(self) -> int:
        """Hits to read at first."""
        return MORE + (int(self.count * SPARE) + 1 if self.spilled else self.count)


@dataclass(frozen=True)
class _Nominated:
    """Hits by float32 scores, best first: all that may be among the best rows, and some more."""

    rows: Int64
    scores: Float32
    places: Int64


def read_parts(
    parts: Sequence[Stored], queries: Float32, cells: Int64, wanted: int, spilled: bool, *, exact: bool
) -> Hits:
    """The best `wanted` different rows in a query's cells, of all parts together. Queries are unit
    vectors."""
    look = _Wanted(wanted, spilled, 2.001 * max(part.error(queries) for part in parts))
    cut = blocks(len(queries), HIT_BYTES * look.first_length * len(parts) + 16 * cells.shape[1])
    each = [_read_block(parts, queries[block], cells[block], look, exact) for block in cut]
    return Hits(np.concatenate([h.rows for h in each]), np.concatenate([h.cosines for h in each]))


def _read_block(
    parts: Sequence[Stored], queries: Float32, cells: Int64, wanted: _Wanted, exact: bool
) -> Hits:
    joined, part_of = _joined([_nominate(part, queries, cells, wanted) for part in parts])

    def score(lines: Int64, columns: Int64) -> Float32:
        scores, owners = np.empty(len(lines), np.float32), part_of[lines, columns]
        for number, part in enumerate(parts):
            own = owners == number
            places = joined.places[lines[own], columns[own]]
            scores[own] = part.scores(queries, lines[own], places)
        return scores

    margin = np.inf if exact else wanted.margin
    order = settle(joined.scores, joined.rows, wanted.count, margin, score, complete=True)
    columns = order.columns[:, : wanted.count]
    return Hits(np.take_along_axis(joined.rows, columns, axis=1), order.scores[:, : wanted.count])


def read_part(part: Any, queries: Float32, cells: Int64, wanted: int, spilled: bool) -> Hits:
    """Of one part, with exact cosines: those of several parts can then be merged."""
    return read_parts([Stored(part)], as_unit(queries), cells, wanted, spilled, exact=True)


def _nominate(part: Stored, queries: Float32, cells: Int64, wanted: _Wanted) -> _Nominated:
    """A few more than are wanted. Where these may not be all (others tie with the last one, or copies of
    spilled rows crowd them out), twice as many and twice as many again, of which the best are kept."""
    length = wanted.first_length
    hits = _read(part, queries, cells, length)
    short = np.flatnonzero(_incomplete(hits, wanted))
    most = int(vectors_read(cells[short], part.sizes).max()) if len(short) else 0
    while len(short):
        length = min(2 * length, most + 1)  # one more than there are: a list that is not full is complete
        cut = blocks(len(short), HIT_BYTES * length)
        short = np.concatenate([_longer(part, queries, cells, wanted, length, hits, short[at]) for at in cut])
    return hits


def _longer(
    part: Stored,
    queries: Float32,
    cells: Int64,
    wanted: _Wanted,
    length: int,
    into: _Nominated,
    lines: Int64,
) -> Int64:
    """Puts the best rows of long lists into those that were too short; gives the lines that need still longer
    ones. Only lists as long as all others are kept: thousands of equal images would fill the memory."""
    hits = _read(part, queries[lines], cells[lines], length)
    short = _incomplete(hits, wanted)
    sure, done = np.flatnonzero(~short), lines[~short]
    best = _settled(part, queries[done], _lines(hits, sure), wanted)
    into.rows[done], into.scores[done], into.places[done] = -1, -np.inf, -1
    kept = best.rows.shape[1]
    into.rows[done, :kept], into.scores[done, :kept] = best.rows, best.scores
    into.places[done, :kept] = best.places
    return lines[short]


def _settled(part: Stored, queries: Float32, hits: _Nominated, wanted: _Wanted) -> _Nominated:
    """The best rows of complete lists, in their exact order."""
    joined, _ = _joined([hits])

    def score(lines: Int64, columns: Int64) -> Float32:
        return part.scores(queries, lines, joined.places[lines, columns])

    order = settle(joined.scores, joined.rows, wanted.count, wanted.margin, score, complete=True)
    best = np.arange(len(queries))[:, None], order.columns[:, : wanted.count]
    scores = np.asarray(order.scores[:, : wanted.count], np.float32)
    return _Nominated(joined.rows[best], scores, joined.places[best])


def _lines(hits: _Nominated, lines: Int64) -> _Nominated:
    return _Nominated(hits.rows[lines], hits.scores[lines], hits.places[lines])


def _read(part: Stored, queries: Float32, cells: Int64, length: int) -> _Nominated:
    places, scores = read_places(part.index, queries, cells, length)
    return _Nominated(part.rows(places), np.where(places >= 0, scores, -np.inf).astype(np.float32), places)


def _incomplete(hits: _Nominated, wanted: _Wanted) -> NDArray[np.bool_]:
    """Where a hit that was not asked for may be as good as the last one wanted: the list is full, and holds
    too few rows, or its end is within the margin of that one."""
    last, many = hits.scores[:, wanted.count - 1], np.ones(len(hits.rows), np.bool_)
    if wanted.spilled:
        different = np.cumsum(~_repeated(hits.rows), axis=1)
        many = different[:, -1] >= wanted.count
        at = np.minimum((different < wanted.count).sum(axis=1), hits.rows.shape[1] - 1)
        last = np.take_along_axis(hits.scores, at[:, None], axis=1)[:, 0]
    full = hits.rows[:, -1] >= 0
    sure = full & many
    sure[full] &= last[full] - hits.scores[full, -1] > wanted.margin
    return full & ~sure


def _joined(each: Sequence[_Nominated]) -> tuple[_Nominated, Int64]:
    """Those of all parts, best first and each row once, and which part each is of."""
    owners = [np.full(hits.rows.shape, number) for number, hits in enumerate(each)]
    again = _repeated(rows := np.concatenate([hits.rows for hits in each], axis=1))
    if len(each) == 1 and not again.any():
        return each[0], owners[0]
    scores = np.concatenate([hits.scores for hits in each], axis=1)
    places = np.concatenate([hits.places for hits in each], axis=1)
    rows[again], scores[again] = -1, -np.inf
    order = np.arange(len(rows))[:, None], np.argsort(-scores, axis=1, kind="stable")
    part_of = np.concatenate(owners, axis=1)
    return _Nominated(rows[order], scores[order], places[order]), part_of[order]


def merge(each: Sequence[Hits], wanted: int) -> Hits:
    """The best of several parts, each row once; equal cosines go to the lower row."""
    rows = np.concatenate([hits.rows for hits in each], axis=1)
    cosines = np.concatenate([hits.cosines for hits in each], axis=1)
    cosines = np.where(_repeated(rows) | (rows < 0), -np.inf, cosines).astype(np.float32)
    return best_hits(rows, cosines, wanted)


def _repeated(rows: Int64) -> NDArray[np.bool_]:
    """True for every occurrence of a row in its line but the first."""
    line, order = np.arange(len(rows))[:, None], np.argsort(rows, axis=1, kind="stable")
    ranked, again = rows[line, order], np.zeros(rows.shape, np.bool_)
    again[line, order[:, 1:]] = ranked[:, 1:] == ranked[:, :-1]
    return again


def reranked(queries: Float32, hits: Hits, fetch: Fetch, exact: bool = True) -> Hits:
    """The same rows, ordered by the cosine of a query, a unit vector, with what `fetch` has of them. Float32
    tells most of them apart, exact products the others; with `exact` all cosines are exact."""
    lines = max(1, RERANK_BYTES // max(1, 4 * hits.rows.shape[1] * queries.shape[1]))
    blocks = [slice(first, first + lines) for first in range(0, len(queries), lines)]
    each = [_reranked(queries[block], hits.rows[block], fetch, exact) for block in blocks]
    rows = np.concatenate([hits.rows[:0], *(part.rows for part in each)])
    return Hits(rows, np.concatenate([hits.cosines[:0], *(part.cosines for part in each)]))


def _reranked(queries: Float32, rows: Int64, fetch: Fetch, exact: bool) -> Hits:
    features = np.zeros((*rows.shape, queries.shape[1]), np.float32)
    there = rows >= 0  # no other row is asked for: row 0 may be in no shard
    features[there] = fetch(rows[there])
    quick = best_columns(rows, np.where(there, _cosines(queries, features), np.float32(-np.inf)))
    rows, cosines = np.take_along_axis(rows, quick[0], axis=1), quick[1]

    def score(lines: Int64, columns: Int64) -> Float32:
        images = normalised(features[lines, quick[0][lines, columns]])
        return (exact_cosines_by_row(queries[lines], images) + 0.0).astype(np.float32)

    longest = np.sqrt(np.einsum("ij,ij->i", queries, queries).max(initial=1.0))
    margin = 4.004 * float(longest) * (float32_error(queries.shape[1]) + 2.0**-22)
    order = settle(cosines, rows, rows.shape[1], np.inf if exact else margin, score, complete=True)
    return Hits(np.take_along_axis(rows, order.columns, axis=1), np.asarray(order.scores, np.float32))


def _cosines(queries: Float32, features: Float32) -> Float32:
    """Quick ones; the order of their sums is torch's own affair."""
    import torch  # cached runs import this module and do without torch

    from mudg_core.index.topk import full_precision

    images = torch.from_numpy(features)
    with full_precision():
        products = torch.bmm(images, torch.from_numpy(queries).unsqueeze(2)).squeeze(2)
    lengths = torch.linalg.vector_norm(images, dim=2).clamp(min=1e-12)
    cosines: Float32 = (products / lengths).numpy()
    return cosines


def best_columns(rows: Int64, cosines: Float32) -> tuple[Int64, Float32]:
    """Columns by cosine, best first, and of equal ones by row; and the cosines in that order."""
    order = np.lexsort((rows, -cosines), axis=1)
    return order, np.take_along_axis(cosines, order, axis=1)


def best_hits(rows: Int64, cosines: Float32, wanted: int) -> Hits:
    """The best so many; a cosine of -inf is nobody's."""
    order, ranked = best_columns(rows, cosines)
    kept = np.take_along_axis(rows, order, axis=1)[:, :wanted]
    return Hits(np.where(np.isneginf(ranked[:, :wanted]), -1, kept), ranked[:, :wanted])
