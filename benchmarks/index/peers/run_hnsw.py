"""hnswlib: a graph over the images."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import hnswlib

from benchmarks.index.peers.measure import NEAREST, Built, Float32, Ids, Params, Problem, main, timed

LINKS = (16, 32)
EF_CONSTRUCTION = 200
EF = (10, 20, 40, 60, 80, 100, 120, 140, 170, 200, 300, 450)


def build(problem: Problem, threads: int) -> Iterator[Built]:
    for links in LINKS:
        index, took = timed(partial(_graph, problem.gallery, links, threads))
        params = {"M": links, "ef_construction": EF_CONSTRUCTION}
        sweep = [{"ef": ef} for ef in EF]
        yield Built(params, took, index.index_file_size(), sweep, partial(_search, index))


def _graph(gallery: Float32, links: int, threads: int) -> hnswlib.Index:
    index = hnswlib.Index(space="ip", dim=gallery.shape[1])
    index.init_index(len(gallery), M=links, ef_construction=EF_CONSTRUCTION, random_seed=0)
    index.set_num_threads(threads)
    index.add_items(gallery, num_threads=threads)
    return index


def _search(index: hnswlib.Index, queries: Float32, params: Params) -> Ids:
    index.set_ef(params["ef"])
    found: Ids = index.knn_query(queries, NEAREST)[0].astype("int64")
    return found


if __name__ == "__main__":
    main(__doc__, build)
