"""The cost of making an index: embed, pair, train, router, spill, populate.

Every function is one arrow of the pipeline's diagram. Memory is what a stage holds for its data, over all
workers; each process needs some hundred megabytes more for Python and its libraries.
"""

from __future__ import annotations

from dataclasses import dataclass

from mudg_core.index.codes import SCALAR_BITS, vector_bytes
from mudg_core.index.router import BATCH, BLOCK, EPOCHS
from mudg_core.index.training_data import NEIGHBORS, held_out
from mudg_core.index.variants import CENTROIDS
from mudg_core.plan.cost import FLOAT, HALF, Cost, product
from mudg_core.plan.target_stages import image_bytes
from mudg_core.plan.workload import Workload

DOUBLE = COUNT = ROW_ID = 8
PQ_CENTROIDS = 256
FITS = {"routed": 1, "spilled": 2, "auto": 3}  # of a router; `spilled` fits again after spilling
ROUTERS = {"routed": 1, "spilled": 1, "auto": 2}
SPILLED = ("spilled", "auto")
WEIGHT_PASSES = 16  # of a router's step: two products, and Adam's reads and writes, in float64
SCORE_PASSES = 12  # of a router's step: softmax, forward and back, in float64
SORT_PASSES = 10
PLACE = 16  # a row and its cell
VOTE = 24  # row, cell, weight
NEIGHBOR = 12  # a row and its cosine
FIRST = 12  # a text's first cell, and how sure the router is


def index_costs(work: Workload) -> list[Cost]:
    """Only variants with a router pay for one; `spill` is no stage of its own: a run spills within the stages
    `router` and `index-part`."""
    variant = work.settings.index.variant
    routed = [router(work)] if variant in FITS else []
    spilled = [spill(work)] if variant in SPILLED else []
    return [embed(work), pair(work), train(work), *routed, *spilled, populate(work)]


def embed(work: Workload) -> Cost:
    """Both towers over every row. Features are kept in half precision; metadata is not counted."""
    clip, batch = work.encoder, min(work.block, work.batch)
    activations = clip.image.layers * clip.image.block_bytes + clip.text.layers * clip.text.block_bytes
    features = HALF * 2 * work.rows * work.dim
    held = 2 * FLOAT * work.block * work.dim + batch * (clip.image.block_bytes + clip.text.block_bytes)
    return Cost(
        "embed",
        flop=work.rows * (clip.image.flop + clip.text.flop),
        moved=work.rows * (2 * activations + FLOAT * clip.parameters / batch),
        read=work.rows * image_bytes(work),
        written=features,
        memory=work.workers * (FLOAT * clip.parameters + held),
    )


def pair(work: Workload) -> Cost:
    """q(p), exactly: every training text against every image searched, which stream by shard by shard. What
    each shard has to offer a text is kept (a new shard then costs no other one a search), and in the end its
    nearest images over all, with as many images at random."""
    flop, moved = product(work.pairs, work.pair_images, work.dim)
    shards = -(-work.pair_images // work.block)
    neighbors = (shards * (NEIGHBORS + 1) + NEIGHBORS) * NEIGHBOR
    kept = work.pairs * (neighbors + 2 * HALF * work.dim)
    read = HALF * work.dim * (work.pairs + work.pair_images)
    memory = FLOAT * work.dim * (work.pairs + min(work.block, work.pair_images))
    return Cost("pair", flop, moved, read, written=kept, memory=memory)


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
    )


def _kinds(work: Workload) -> int:
    return len(CENTROIDS) if work.settings.index.variant == "auto" else 1


def router(work: Workload) -> Cost:
    """One linear layer on the cells of the texts' neighbours: forward, and back to its weights alone. It may
    stop before its last epoch. All texts are in one process, and homes of all rows."""
    fits, routers = (table[work.settings.index.variant] for table in (FITS, ROUTERS))
    check = held_out(work.pairs)
    training, values = work.pairs - check, work.cells * work.dim
    texts = 2 * EPOCHS * training + (EPOCHS + 1) * check + work.pairs
    steps = EPOCHS * -(-training // BATCH)
    step = FLOAT * (WEIGHT_PASSES * values + SCORE_PASSES * BATCH * work.cells)
    kept = routers * (2 * FLOAT * values + FIRST * work.pairs)
    return Cost(
        "router",
        flop=fits * 2 * texts * values,
        moved=fits * steps * step,
        read=routers * (HALF * work.pairs * work.dim + PLACE * work.rows),
        written=kept,
        memory=FLOAT * (2 * work.pairs * work.dim + 12 * values + 6 * BLOCK * work.cells) + PLACE * work.rows,
    )


def spill(work: Workload) -> Cost:
    """Second homes where texts look first. Sorting votes: of all texts' neighbours once, and of those in each
    shard where its part is written. The second homes themselves are in the size of the index."""
    shards = -(-work.pair_images // work.block)
    votes, places = VOTE * work.pairs * NEIGHBORS, PLACE * work.rows
    moved = SORT_PASSES * (votes * (1 + shards) + 2 * places)
    read = NEIGHBOR * work.pairs * shards * (NEIGHBORS + 1) + places
    return Cost("spill", moved=moved, read=read, memory=2 * (votes + places))


def populate(work: Workload) -> Cost:
    """Every image to its nearest centroid (of each kind, where variants are compared), then into the index:
    one part in the memory of each worker at a time, so memory does not grow with the corpus."""
    flop, moved = product(work.rows, work.cells, work.dim)
    kinds, code = _kinds(work), work.settings.index.code
    rows = min(work.rows, work.settings.index.rows_per_part)
    index, busy = index_bytes(work, code), min(work.workers, -(-work.rows // rows))
    return Cost(
        "populate",
        flop=kinds * flop,
        moved=kinds * moved + index,
        read=(kinds + 1) * HALF * work.rows * work.dim,  # once more to write the index
        written=index,
        memory=busy * (_part_bytes(work, code, rows) + FLOAT * work.dim * (work.cells + work.block)),
    )


def index_bytes(work: Workload, code: str) -> int:
    """The index on disk: a code and an id for each row (and for each second home that it may get), the
    centroids, and a product quantiser's codebook."""
    return _part_bytes(work, code, work.rows) + FLOAT * work.cells * work.dim


def _part_bytes(work: Workload, code: str, rows: int) -> int:
    index = work.settings.index
    spilled = int(index.spill * rows) if index.variant in SPILLED else 0
    codebook = 0 if code in SCALAR_BITS else FLOAT * PQ_CENTROIDS * work.dim
    return (rows + spilled) * vector_bytes(code, work.dim) + codebook


def index_sizes(work: Workload) -> dict[str, int]:
    """The same for the code that is set and for those it could be, largest first."""
    codes = {*SCALAR_BITS, work.settings.index.code, *(["pq64"] if work.dim % 64 == 0 else [])}
    sizes = {code: index_bytes(work, code) for code in codes}
    return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))
