"""ScaNN: a tree of leaves with SOAR spilling, anisotropic 4-bit codes, and exact reordering.

Two dimensions share a code: four lose too much of these embeddings for reordering to find again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import scann

from benchmarks.index.peers.measure import NEAREST, Built, Float32, Ids, Params, Problem, main, timed

ROWS_PER_LEAF = (200, 100)  # 50 was slower at every recall
SEARCHED = (0.03, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12, 0.2)  # share of the leaves
REORDERED = (40, 60, 100)
SOAR_LAMBDA, OVERRETRIEVE = 1.5, 2.0
DIMENSIONS_PER_BLOCK, ANISOTROPIC = 2, 0.2


def build(problem: Problem, threads: int) -> Iterator[Built]:
    for leaves in (len(problem.gallery) // rows for rows in ROWS_PER_LEAF):
        index, took = timed(partial(_tree, problem.gallery, leaves, threads))
        sweep = [
            {"leaves_to_search": max(1, round(share * leaves)), "reorder": reorder}
            for share, reorder in product(SEARCHED, REORDERED)
        ]
        yield Built({"num_leaves": leaves}, took, _bytes(index), sweep, partial(_search, index))


def _tree(gallery: Float32, leaves: int, threads: int) -> Any:
    builder = scann.scann_ops_pybind.builder(gallery, NEAREST, "dot_product").set_n_training_threads(threads)
    builder = builder.tree(
        leaves,
        num_leaves_to_search=leaves // 10,
        training_sample_size=len(gallery),
        soar_lambda=SOAR_LAMBDA,
        overretrieve_factor=OVERRETRIEVE,
    )
    builder = builder.score_ah(DIMENSIONS_PER_BLOCK, anisotropic_quantization_threshold=ANISOTROPIC)
    index = builder.reorder(REORDERED[-1]).build()
    index.set_num_threads(threads)
    return index


def _search(index: Any, queries: Float32, params: Params) -> Ids:
    """`search_batched` uses one thread; it has a sibling that uses more."""
    if len(queries) == 1:
        found, _ = index.search(queries[0], NEAREST, params["reorder"], params["leaves_to_search"])
        return found[None]  # type: ignore[no-any-return]
    found, _ = index.search_batched(queries, NEAREST, params["reorder"], params["leaves_to_search"])
    return found  # type: ignore[no-any-return]


def _bytes(index: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        index.serialize(folder)
        return sum(file.stat().st_size for file in Path(folder).iterdir())


if __name__ == "__main__":
    main(__doc__, build)
