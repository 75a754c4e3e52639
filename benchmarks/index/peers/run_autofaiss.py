"""autofaiss: its own choice of a faiss index, with its own tuning of the search.

It tunes for a time per query, with images as queries; a sweep over times gives a curve. What it builds
depends on whether the index must be memory-mappable, as large ones must: a graph if not, an IVF if so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import faiss
from autofaiss import build_index
from autofaiss.external.optimize import get_optimal_hyperparameters, get_optimal_index_keys_v2
from autofaiss.indices.index_utils import get_index_size, set_search_hyperparameters

from benchmarks.index.peers.measure import NEAREST, Built, Float32, Ids, Params, Problem, main, timed

MEMORY = "16G"  # its default
MILLISECONDS = (0.2, 0.5, 1.0, 2.0, 4.0, 10.0)  # a query; the last is its default


def build(problem: Problem, threads: int) -> Iterator[Built]:
    gallery = problem.gallery
    for mapped in (False, True):
        key = get_optimal_index_keys_v2(*gallery.shape, MEMORY, should_be_memory_mappable=mapped)[0]
        index, took = timed(partial(_index, gallery, key, threads))
        tuned = dict.fromkeys(get_optimal_hyperparameters(index, key, limit) for limit in MILLISECONDS)
        sweep = [{"search": params} for params in tuned]
        yield Built({"index": key}, took, get_index_size(index), sweep, partial(_search, index), _reader(key))


def _index(gallery: Float32, key: str, threads: int) -> Any:
    with TemporaryDirectory() as folder:
        index, _ = build_index(
            gallery,
            index_path=str(Path(folder) / "index"),
            index_infos_path=str(Path(folder) / "infos"),
            index_key=key,
            metric_type="ip",
            max_index_memory_usage=MEMORY,
            nb_cores=threads,
            verbose=logging.ERROR,
        )
    faiss.omp_set_num_threads(threads)
    return index


def _search(index: Any, queries: Float32, params: Params) -> Ids:
    set_search_hyperparameters(index, params["search"])
    return index.search(queries, NEAREST)[1]  # type: ignore[no-any-return]


def _reader(key: str) -> Callable[[], int]:
    """faiss counts the vectors that queries were compared with since the counter was last reset."""
    counters: Any = faiss.cvar
    counter = counters.indexIVF_stats if "IVF" in key else counters.hnsw_stats

    def read() -> int:
        count = int(counter.ndis)
        counter.reset()
        return count

    return read


if __name__ == "__main__":
    main(__doc__, build)
