"""The cost of making an index: embed, pair, train, populate. The router is in `router_stages.py`; what a
target costs is in `target_stages.py` and `judged_stages.py`.

Every function is one arrow of the pipeline's diagram. Memory is what a stage holds for its data, over all
workers; each process needs some hundred megabytes more for Python and its libraries.
"""

from __future__ import annotations

from dataclasses import dataclass

from mudg_core.index.codes import SCALAR_BITS, vector_bytes
from mudg_core.index.pairs import NEIGHBORS
from mudg_core.index.variants import CENTROIDS
from mudg_core.plan import judged_stages, router_stages, target_stages
from mudg_core.plan.cost import FLOAT, HALF, Cost, product
from mudg_core.plan.workload import Workload

ROW_ID = 8
COUNT = 8
DOUBLE = 8
PQ_CENTROIDS = 256


def costs(work: Workload) -> list[Cost]:
    """All stages that cost something, about in the order they run."""
    index = [embed(work), pair(work), train(work), *router_stages.costs(work), populate(work)]
    return [*index, *target_stages.costs(work), *judged_stages.costs(work)]


def embed(work: Workload) -> Cost:
    """Both towers over every row. Features are kept in half precision; metadata is not counted."""
    clip, batch = work.encoder, min(work.block, work.batch)
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
    """q(p), exactly: every training text against every image searched, which stream by shard by shard. What
    each shard has to offer a text is kept (a new shard then costs no other one a search), and in the end its
    nearest images over all, with as many images at random."""
    flop, moved = product(work.pairs, work.pair_images, work.dim)
    each, shards = ROW_ID + FLOAT, -(-work.pair_images // work.block)
    found = work.pairs * (shards * (NEIGHBORS + 1) * each + NEIGHBORS * each + 2 * HALF * work.dim)
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

    @property
    def sums_in_single(self) -> int:
        """What would come back in single precision: half of each value, but whole counts."""
        return self.sums_back - self.centroids_out


def exchange(work: Workload) -> Exchange:
    """Sums come back as float64, in which they are exact: however texts are spread over workers, the result
    is the same. With each comes how many texts it is of."""
    values = work.cells * work.dim
    return Exchange(FLOAT * values, DOUBLE * values + COUNT * work.cells)


def train(work: Workload) -> Cost:
    """Iterations over pairs that stay in memory, spread over the workers: both sides of each as float32.
    Where variants are compared, each kind of centroids is trained once."""
    kinds, sent = _kinds(work), exchange(work)
    iterations = kinds * work.settings.index.iterations
    flop, moved = product(work.pairs, work.cells, work.dim)
    sums = FLOAT * work.pairs * work.dim  # each text is added to its cell's sum
    traffic = work.workers * (sent.centroids_out + sent.sums_back)
    return Cost(
        "train",
        flop=iterations * flop,
        moved=iterations * (moved + sums + traffic),
        read=kinds * work.pairs * (2 * HALF * work.dim + ROW_ID),
        written=kinds * sent.centroids_out,
        memory=2 * FLOAT * work.pairs * work.dim + traffic,
        stored=kinds * sent.centroids_out,
    )


def _kinds(work: Workload) -> int:
    return len(CENTROIDS) if work.settings.index.variant == "auto" else 1


def index_bytes(work: Workload, code: str) -> int:
    """The index on disk: a code and an id for each row (and for each second home that it may get), the
    centroids, and a product quantiser's codebook."""
    return _part_bytes(work, code, work.rows) + FLOAT * work.cells * work.dim


def _part_bytes(work: Workload, code: str, rows: int) -> int:
    index = work.settings.index
    spilled = int(index.spill * rows) if index.variant in ("auto", "spilled") else 0
    codebook = 0 if code in SCALAR_BITS else FLOAT * PQ_CENTROIDS * work.dim
    return (rows + spilled) * vector_bytes(code, work.dim) + codebook


def index_sizes(work: Workload) -> dict[str, int]:
    """The same for the code that is set and for those it could be, largest first."""
    codes = {*SCALAR_BITS, work.settings.index.code, *(["pq64"] if work.dim % 64 == 0 else [])}
    sizes = {code: index_bytes(work, code) for code in codes}
    return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def populate(work: Workload) -> Cost:
    """Every image to its nearest centroid (of each kind, where variants are compared), then into the index:
    one part in the memory of each worker at a time, so memory does not grow with the corpus."""
    flop, moved = product(work.rows, work.cells, work.dim)
    kinds = _kinds(work)
    code, rows = work.settings.index.code, min(work.rows, work.settings.index.rows_per_part)
    index, busy = index_bytes(work, code), min(work.workers, -(-work.rows // rows))
    return Cost(
        "populate",
        flop=kinds * flop,
        moved=kinds * moved + index,
        read=(kinds + 1) * HALF * work.rows * work.dim,  # once more to write the index
        written=index,
        memory=busy * (_part_bytes(work, code, rows) + FLOAT * work.dim * (work.cells + work.block)),
        stored=index,
    )
