"""Searching an index of one or many parts: route, read cells, merge, re-rank.

faiss computes scores in float32, by instructions that differ from CPU to CPU. They nominate; wherever two are
too close to tell, exact ones decide (`settle.py`). So which rows are found, and in which order, depends on
the index and the query alone: not on CPU, threads, batches, or on how many parts there are. An exact score is
rounded to float32, and of equal ones the lower row comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.coarse import Coarse, Probing, vectors_read
from mudg_core.index.ivf import Hits, read_places, sizes
from mudg_core.index.rerank import Fetch, best_hits, reranked
from mudg_core.index.settle import settle
from mudg_core.index.stored import Stored
from mudg_core.index.vectors import Float32, Int64

SPARE = 1.4  # hits asked for at first, for each that is wanted, where rows may occur more than once
MORE = 4  # hits asked for beside those that are wanted, in case they tie with the last one


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

    def choose(self, queries: Float32, probing: Probing) -> Int64:
        return self.coarse.choose(queries, self.sizes, probing)

    def search(
        self, queries: Float32, neighbors: int, probing: Probing, rerank: int = 0, *, exact: bool = False
    ) -> Found:
        """`rerank` best hits are compared again with exact features, before the best `neighbors` of them are
        kept. Rows and their order are exact in any case; with `exact` all cosines are too."""
        queries = np.ascontiguousarray(queries, np.float32)
        cells = self.choose(queries, probing)
        wanted = max(neighbors, rerank)
        hits = read_parts(self._stored, queries, cells, wanted, self.spilled, exact=exact and not rerank)
        return Found(self.finish(queries, hits, neighbors, rerank, exact), vectors_read(cells, self.sizes))

    def finish(self, queries: Float32, hits: Hits, neighbors: int, rerank: int, exact: bool = True) -> Hits:
        if rerank and self.fetch is not None:
            hits = reranked(queries, hits, self.fetch, exact)
        return Hits(hits.rows[:, :neighbors], hits.cosines[:, :neighbors])


@dataclass(frozen=True)
class _Nominated:
    """Hits by float32 scores, best first: all that may be among the best `wanted` rows, and some more."""

    rows: Int64
    scores: Float32
    places: Int64


def read_parts(
    parts: Sequence[Stored], queries: Float32, cells: Int64, wanted: int, spilled: bool, *, exact: bool
) -> Hits:
    """The best `wanted` different rows in a query's cells, of all parts together."""
    error = max(part.error(queries) for part in parts)
    each = [_nominate(part, queries, cells, wanted, spilled, 2.001 * error) for part in parts]
    joined, part_of = _joined(each)

    def score(lines: Int64, columns: Int64) -> Float32:
        scores, owners = np.empty(len(lines), np.float32), part_of[lines, columns]
        for number, part in enumerate(parts):
            own = owners == number
            places = joined.places[lines[own], columns[own]]
            scores[own] = part.scores(queries, lines[own], places)
        return scores

    margin = np.inf if exact else 2.001 * error
    found = settle(joined.scores, joined.rows, wanted, margin, score, complete=True)
    rows = joined.rows[np.arange(len(queries))[:, None], found.columns[:, :wanted]]
    return Hits(*_widened(wanted, rows, found.scores[:, :wanted]))


def read_part(part: Any, queries: Float32, cells: Int64, wanted: int, spilled: bool) -> Hits:
    """Of one part, with exact cosines: those of several parts can then be merged."""
    return read_parts([Stored(part)], queries, cells, wanted, spilled, exact=True)


def _nominate(
    part: Stored, queries: Float32, cells: Int64, wanted: int, spilled: bool, margin: float
) -> _Nominated:
    """A few more than are wanted, and again twice as many for the queries where these may not be all: others
    tie with the last one, or copies of spilled rows crowd them out."""
    asked = MORE + (int(wanted * SPARE) + 1 if spilled else wanted)
    found = _read(part, queries, cells, asked)
    short = np.flatnonzero(_incomplete(found, wanted, spilled, margin))
    while len(short):
        asked *= 2
        more = _read(part, queries[short], cells[short], asked)
        found = _Nominated(*_widened(asked, found.rows, found.scores, found.places))
        found.rows[short], found.scores[short], found.places[short] = more.rows, more.scores, more.places
        short = short[_incomplete(more, wanted, spilled, margin)]
    return found


def _read(part: Stored, queries: Float32, cells: Int64, asked: int) -> _Nominated:
    places, scores = read_places(part.index, queries, cells, asked)
    return _Nominated(part.rows(places), np.where(places >= 0, scores, -np.inf).astype(np.float32), places)


def _incomplete(found: _Nominated, wanted: int, spilled: bool, margin: float) -> NDArray[np.bool_]:
    """Where a hit that was not asked for may be as good as the last one wanted: the list is full, and holds
    too few rows, or its end is within the margin of that one."""
    last, many = found.scores[:, wanted - 1], np.ones(len(found.rows), np.bool_)
    if spilled:
        different = np.cumsum(~_repeated(found.rows), axis=1)
        many = different[:, -1] >= wanted
        at = np.minimum((different < wanted).sum(axis=1), found.rows.shape[1] - 1)
        last = np.take_along_axis(found.scores, at[:, None], axis=1)[:, 0]
    full = found.rows[:, -1] >= 0
    sure = full & many
    sure[full] &= last[full] - found.scores[full, -1] > margin
    return full & ~sure


def _joined(each: Sequence[_Nominated]) -> tuple[_Nominated, Int64]:
    """Those of all parts, best first and each row once, and which part each is of."""
    owners = [np.full(found.rows.shape, number) for number, found in enumerate(each)]
    again = _repeated(rows := np.concatenate([found.rows for found in each], axis=1))
    if len(each) == 1 and not again.any():
        return each[0], owners[0]
    scores = np.concatenate([found.scores for found in each], axis=1)
    places = np.concatenate([found.places for found in each], axis=1)
    rows[again], scores[again] = -1, -np.inf
    order = np.arange(len(rows))[:, None], np.argsort(-scores, axis=1, kind="stable")
    part_of = np.concatenate(owners, axis=1)
    return _Nominated(rows[order], scores[order], places[order]), part_of[order]


def _widened(columns: int, rows: Int64, scores: Float32, *places: Int64) -> Any:
    """With so many columns, or more; what is added is nobody."""
    if rows.shape[1] >= columns:
        return rows, scores, *places
    more = (0, 0), (0, columns - rows.shape[1])
    wider = [np.pad(array, more, constant_values=-1) for array in (rows, *places)]
    return wider[0], np.pad(scores, more, constant_values=-np.inf), *wider[1:]


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
