"""Candidates: which images the queries of a target retrieved, each image once.

A query is a (label, augmentation) pair. All its hits are kept with their rank and cosine, because everything
that follows (labels, filter, provenance in the report) explains itself by them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mudg_core.index.ivf import Hits
from mudg_core.index.vectors import Float32, Int64

Features = Callable[[Int64], Float32]  # of corpus rows


def flatten(hits: Hits, labels: Int64) -> pa.Table:
    """One line a hit: query, label, rank (1 is best), row, cosine. Missing results (id -1) are dropped.

    `labels` has the label of each query.
    """
    queries, neighbors = hits.rows.shape
    query = np.repeat(np.arange(queries, dtype=np.int64), neighbors)
    rank = np.tile(np.arange(1, neighbors + 1, dtype=np.int64), queries)
    row = hits.rows.ravel()
    there = row >= 0
    return pa.table(
        {
            "query": query[there],
            "label": labels[query[there]],
            "rank": rank[there],
            "row": row[there],
            "cosine": hits.cosines.ravel()[there],
        }
    )


def merge_duplicates(hits: pa.Table, metadata: pa.Table) -> pa.Table:
    """Hits with every copy of an image (same URL or same content) under its lowest row.

    `metadata` has one line for each row among the hits, with columns row, url and sha256. Where two rows of
    one image were hit by the same query, the better rank stays.
    """
    rows = metadata.column("row").to_numpy()
    canonical = _lowest_copies(rows, [_codes(metadata.column(name)) for name in ("url", "sha256")])
    order = np.argsort(rows)
    place = order[np.searchsorted(rows, hits.column("row").to_numpy(), sorter=order)]
    merged = hits.set_column(hits.column_names.index("row"), "row", pa.array(canonical[place]))
    return _best_of_each_query(merged)


def _codes(values: pa.ChunkedArray) -> Int64:
    """A number for each distinct value; an unknown one (null or empty) is like no other."""
    codes = pc.dictionary_encode(pc.if_else(pc.equal(values, ""), None, values)).combine_chunks().indices
    unknown = codes.is_null().to_numpy(zero_copy_only=False)
    numbers: Int64 = codes.fill_null(0).to_numpy().astype(np.int64)
    numbers[unknown] = len(numbers) + np.arange(unknown.sum())
    return numbers


def _lowest_copies(rows: Int64, codes: list[Int64]) -> Int64:
    """The lowest row among each row's copies, copies of copies included."""
    canonical, before = rows.copy(), None
    while before is None or (canonical != before).any():
        before = canonical
        for numbers in codes:
            lowest = np.full(numbers.max(initial=-1) + 1, np.iinfo(np.int64).max)
            np.minimum.at(lowest, numbers, canonical)
            canonical = lowest[numbers]
    return canonical


def _best_of_each_query(hits: pa.Table) -> pa.Table:
    query, row, rank = (hits.column(name).to_numpy() for name in ("query", "row", "rank"))
    order = np.lexsort((rank, row, query))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(query[order]) != 0) | (np.diff(row[order]) != 0)
    kept = np.sort(order[first])
    return hits.take(pa.array(kept))
