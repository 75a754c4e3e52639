"""Candidates: which images the queries of a target retrieved, each image once.

A query is a (label, augmentation) pair. All its hits are kept with their rank and cosine, because everything
that follows (labels, filter, provenance in the report) explains itself by them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mudg_core.index.ivf import Hits

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Funnel:
    """How many results were left after each step, for the report."""

    queries: int
    hits: int
    missing: int
    unique_rows: int
    unique_images: int


def flatten(hits: Hits, queries_per_label: int) -> pa.Table:
    """One line a hit: query, label, rank (1 is best), row, cosine. Missing results (id -1) are dropped."""
    queries, neighbors = hits.rows.shape
    query = np.repeat(np.arange(queries, dtype=np.int64), neighbors)
    rank = np.tile(np.arange(1, neighbors + 1, dtype=np.int64), queries)
    row = hits.rows.ravel()
    there = row >= 0
    return pa.table(
        {
            "query": query[there],
            "label": query[there] // queries_per_label,
            "rank": rank[there],
            "row": row[there],
            "cosine": hits.cosines.ravel()[there],
        }
    )


def merge_duplicates(hits: pa.Table, metadata: pa.Table) -> pa.Table:
    """Hits with every copy of an image (same URL or same content) told as its lowest row.

    `metadata` has one line for each row among the hits, with columns row, url and sha256. Where two rows of
    one image were hit by the same query, the better rank stays.
    """
    rows = metadata.column("row").to_numpy()
    canonical = rows.copy()
    for column in ("url", "sha256"):
        codes = pc.dictionary_encode(metadata.column(column)).combine_chunks().indices.to_numpy()
        lowest = np.full(codes.max(initial=-1) + 1, np.iinfo(np.int64).max)
        np.minimum.at(lowest, codes, canonical)
        canonical = lowest[codes]
    order = np.argsort(rows)
    place = order[np.searchsorted(rows, hits.column("row").to_numpy(), sorter=order)]
    merged = hits.set_column(hits.column_names.index("row"), "row", pa.array(canonical[place]))
    return _best_of_each_query(merged)


def _best_of_each_query(hits: pa.Table) -> pa.Table:
    query, row, rank = (hits.column(name).to_numpy() for name in ("query", "row", "rank"))
    order = np.lexsort((rank, row, query))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(query[order]) != 0) | (np.diff(row[order]) != 0)
    kept = np.sort(order[first])
    return hits.take(pa.array(kept))
