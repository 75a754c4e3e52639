"""Hits compared again, with better features than the index has of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.exact_products import exact_cosines_by_row, float32_error
from mudg_core.index.ivf import Hits
from mudg_core.index.settle import settle
from mudg_core.index.vectors import Float32, Int64, normalised

Fetch = Callable[[Int64], NDArray[np.floating]]  # image features of rows, more exact than the code

RERANK_BYTES = 1 << 26


def reranked(queries: Float32, hits: Hits, fetch: Fetch, exact: bool = True) -> Hits:
    """The same rows, ordered by the cosine of a query, a unit vector, with what `fetch` has of them. Float32
    tells most of them apart, exact products the others; with `exact` all cosines are exact."""
    lines = max(1, RERANK_BYTES // max(1, 4 * hits.rows.shape[1] * queries.shape[1]))
    blocks = [slice(first, first + lines) for first in range(0, len(queries), lines)]
    each = [_reranked(queries[block], hits.rows[block], fetch, exact) for block in blocks]
    rows = np.concatenate([hits.rows[:0], *(found.rows for found in each)])
    return Hits(rows, np.concatenate([hits.cosines[:0], *(found.cosines for found in each)]))


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
    found = settle(cosines, rows, rows.shape[1], np.inf if exact else margin, score, complete=True)
    return Hits(np.take_along_axis(rows, found.columns, axis=1), np.asarray(found.scores, np.float32))


def _cosines(queries: Float32, features: Float32) -> Float32:
    """Quick ones; the order of their sums is torch's own affair."""
    import torch  # here: see `coarse._before`

    from mudg_core.index.products import full_precision

    images = torch.from_numpy(features)
    with full_precision():
        products = torch.bmm(images, torch.from_numpy(queries).unsqueeze(2)).squeeze(2)
    lengths = torch.linalg.vector_norm(images, dim=2).clamp(min=1e-12)
    found: Float32 = (products / lengths).numpy()
    return found


def best_columns(rows: Int64, cosines: Float32) -> tuple[Int64, Float32]:
    """Columns by cosine, best first, and of equal ones by row; and the cosines in that order."""
    order = np.lexsort((rows, -cosines), axis=1)
    return order, np.take_along_axis(cosines, order, axis=1)


def best_hits(rows: Int64, cosines: Float32, wanted: int) -> Hits:
    """The best so many; a cosine of -inf is nobody's."""
    order, ranked = best_columns(rows, cosines)
    kept = np.take_along_axis(rows, order, axis=1)[:, :wanted]
    return Hits(np.where(np.isneginf(ranked[:, :wanted]), -1, kept), ranked[:, :wanted])
