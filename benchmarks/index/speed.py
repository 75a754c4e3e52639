"""Our steps beside faiss' own on the same data, one thread, in CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import faiss
import numpy as np

from benchmarks.index.ours import CELLS, Data, Shard, Variant, searcher
from benchmarks.index.world import DIM
from mudg_core.encode.shard import EmbeddingShard
from mudg_core.index import ivf, kmeans
from mudg_core.index.coarse import Coarse
from mudg_core.index.part import assign_shard
from mudg_core.index.recall import recall_at
from mudg_core.index.routing import Probing
from mudg_core.index.vectors import Float32, normalised

ROUNDS = 7
MANY_CELLS = 16 * CELLS


def iteration_ratio(data: Data, variant: Variant) -> float:
    """An iteration of paired k-means, with both objectives, over one of `faiss.Kmeans` of the same size."""
    texts = data.training
    images = normalised(data.gallery[data.truth["training"][:, 0]])
    shard, centroids = kmeans.PairShard(images, texts), variant.coarse.centroids
    return _ratio(lambda: _ours(shard, centroids), lambda: _faiss(images, centroids))


def _ours(shard: kmeans.PairShard, centroids: Float32) -> None:
    kmeans.train(kmeans.LocalPool([shard]), kmeans.Clustering(centroids, ()), 2)


def _faiss(images: Float32, centroids: Float32) -> None:
    """Two iterations, no sampling: at 256 points a cell faiss would otherwise leave some out."""
    most = len(images)
    trainer: Any = faiss.Kmeans(DIM, CELLS, niter=2, spherical=True, max_points_per_centroid=most)
    trainer.train(images, init_centroids=centroids)


def add_ratios(data: Data, variant: Variant) -> dict[str, float]:
    """With the cells of the other measurements, and with more, of which each image has to be compared with
    all: what is done twice weighs less then. Real indices have still more."""
    many = Coarse.unrouted(variant.coarse.centring, normalised(data.gallery[:MANY_CELLS]))
    return {str(coarse.cells): add_ratio(data, coarse) for coarse in (variant.coarse, many)}


def add_ratio(data: Data, coarse: Coarse) -> float:
    """A shard in half precision into an empty index, as a build adds it, over faiss' own `add_with_ids`."""
    rows = np.arange(min(50_000, len(data.gallery)))
    stored = Shard(data.gallery[: len(rows)], data.gallery[: len(rows)], rows)
    sample = normalised(data.gallery[:20_000])
    blank = ivf.blank("sq8", coarse.cells, sample)
    quantiser = faiss.IndexFlatIP(DIM)
    quantiser.add(coarse.centroids)
    theirs = faiss.IndexIVFScalarQuantizer(
        quantiser, DIM, coarse.cells, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, False
    )
    theirs.train(sample)

    parts = [slice(first, first + kmeans.TILE) for first in range(0, len(rows), kmeans.TILE)]

    def ours() -> None:
        cells = assign_shard(coarse, cast(EmbeddingShard, stored)).cells
        blocks = ((rows[part], cells[part], normalised(stored.images[part])) for part in parts)
        ivf.populate(faiss.clone_index(blank), blocks)

    def faiss_alone() -> None:
        index = faiss.clone_index(theirs)
        for part in parts:
            index.add_with_ids(normalised(stored.images[part]), rows[part])

    return _ratio(ours, faiss_alone)


def rerank_loss(data: Data, variant: Variant) -> dict[str, float]:
    """R@1 points that four bits lose against whole vectors when the best 30 are compared again."""
    probing, found = Probing(CELLS, 0.95, 0.7), {}
    for code, rerank in (("flat", 0), ("sq4", 0), ("sq4", 30)):
        hits = searcher(data, variant, code).search(data.report, 10, probing, rerank).hits
        found[code, rerank] = 100 * recall_at(hits.rows, data.truth["report"], 1).value
    return {
        "sq4_rerank_loss": found["flat", 0] - found["sq4", 30],
        "sq4_loss_without_rerank": found["flat", 0] - found["sq4", 0],
    }


def sharded_identical(data: Data) -> bool:
    """One shard, two, four, and on Dask with one worker and with two: the same bytes."""
    from benchmarks.index.on_dask import train_on_dask

    texts, images = data.training, normalised(data.gallery[data.truth["training"][:, 0]])
    start = kmeans.Clustering(images[kmeans.initial(images, CELLS, 0)], ())
    found = set()
    for shards in (1, 2, 4):
        parts = kmeans.cut(len(images), shards)
        pool = kmeans.LocalPool([kmeans.PairShard(images[p], texts[p]) for p in parts])
        found.add(kmeans.train(pool, start, 3).centroids.tobytes())
    found |= {train_on_dask(images, texts, start, workers).tobytes() for workers in (1, 2)}
    return len(found) == 1


def _ratio(ours: Callable[[], Any], theirs: Callable[[], Any]) -> float:
    """Alternating, and the quickest of each: whatever else the machine does only ever adds time."""
    pairs = [(_cpu(ours), _cpu(theirs)) for _ in range(ROUNDS)]
    return min(one for one, _ in pairs) / min(other for _, other in pairs)


def _cpu(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
