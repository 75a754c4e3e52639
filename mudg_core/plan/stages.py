"""The cost of making an index: embed, pair, train, populate. What a target costs is in `target_stages.py`.

Every function is one arrow of the pipeline's diagram. Memory is what a stage holds for its data, over all
workers; each process needs some hundred megabytes more for Python and its libraries.
"""

from __future__ import annotations

from dataclasses import dataclass

from mudg_core.index.codes import SCALAR_BITS, vector_bytes
from mudg_core.plan import target_stages
from mudg_core.plan.cost import FLOAT, HALF, Cost, product
from mudg_core.plan.workload import Workload

ROW_ID = 8
COUNT = 8
PQ_CENTROIDS = 256


def costs(work: Workload) -> list[Cost]:
    """All stages in the order they run."""
    return [embed(work), pair(work), train(work), populate(work), *target_stages.costs(work)]


def embed(work: Workload) -> Cost:
    """Both towers over every row. Features are kept in half precision; metadata is not counted."""
    clip, batch = work.encoder, min(work.block, work.settings.encode.batch_size)
    activations = clip.image.layers * clip.image.block_bytes + clip.text.layers * clip.text.block_bytes
    features = 2 * work.rows * work.dim
    held = 2 * FLOAT * work.block * work.dim + batch * (clip.image.block_bytes + clip.text.block_bytes)
    return Cost(
        "embed",
        flop=work.rows * (clip.image.flop + clip.text.flop),
        moved=work.rows * (2 * activations + FLOAT * clip.parameters / batch),
        read=work.rows * target_stages.image_bytes(work),
        written=HALF * features,
        memory=work.workers * (FLOAT * clip.parameters + held),
        stored=HALF * features,
    )


def pair(work: Workload) -> Cost:
    """q(p), exactly: every training text against every image searched, which stream by shard by shard."""
    flop, moved = product(work.pairs, work.pair_images, work.dim)
    found = work.pairs * (HALF * work.dim + ROW_ID)
    return Cost(
        "pair",
        flop=flop,
        moved=moved,
        read=HALF * work.dim * (work.pairs + work.pair_images),
        written=found,
        memory=FLOAT * work.dim * (work.pairs + min(work.block, work.pair_images)),
        stored=found,
    )


@dataclass(frozen=True)
class Exchange:
    """What one iteration of paired k-means sends to a worker and gets back."""

    centroids_out: int
    sums_back: int


def exchange(work: Workload) -> Exchange:
    """Sums of texts are as large as centroids; with each comes how many texts it is of."""
    centroids = FLOAT * work.cells * work.dim
    return Exchange(centroids, centroids + COUNT * work.cells)


def train(work: Workload) -> Cost:
    """Iterations over pairs that stay in memory, spread over the workers: both sides of each as float32."""
    iterations, sent = work.settings.index.iterations, exchange(work)
    flop, moved = product(work.pairs, work.cells, work.dim)
    sums = FLOAT * work.pairs * work.dim  # each text is added to its cell's sum
    traffic = work.workers * (sent.centroids_out + sent.sums_back)
    return Cost(
        "train",
        flop=iterations * flop,
        moved=iterations * (moved + sums + traffic),
        read=work.pairs * (2 * HALF * work.dim + ROW_ID),
        written=sent.centroids_out,
        memory=2 * FLOAT * work.pairs * work.dim + traffic,
        stored=sent.centroids_out,
    )


def index_bytes(work: Workload, code: str) -> int:
    """The index on disk: a code and an id for each row, the centroids, and a product quantiser's codebook."""
    codebook = 0 if code in SCALAR_BITS else FLOAT * PQ_CENTROIDS * work.dim
    return work.rows * vector_bytes(code, work.dim) + FLOAT * work.cells * work.dim + codebook


def index_sizes(work: Workload) -> dict[str, int]:
    """The same for the code that is set and for those it could be, largest first."""
    codes = {*SCALAR_BITS, work.settings.index.code, *(["pq64"] if work.dim % 64 == 0 else [])}
    sizes = {code: index_bytes(work, code) for code in codes}
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def populate(work: Workload) -> Cost:
    """Every image to its nearest centroid. The index is built in memory, whole, and written at the end."""
    flop, moved = product(work.rows, work.cells, work.dim)
    index = index_bytes(work, work.settings.index.code)
    return Cost(
        "populate",
        flop=flop,
        moved=moved + index,
        read=HALF * work.rows * work.dim,
        written=index,
        memory=index + FLOAT * work.block * work.dim,
        stored=index,
    )
