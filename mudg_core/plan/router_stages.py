"""The cost of the query side of an index: fitting the router, and second homes where texts look first.

Only the variants `routed` and `spilled` have it, and `auto`, which tries both. `spill` is no stage of its
own: a run spills within the stages `router` and `index-part`.
"""

from __future__ import annotations

from mudg_core.index.pairs import NEIGHBORS, held_out
from mudg_core.index.router import BATCH, BLOCK, EPOCHS
from mudg_core.plan.cost import FLOAT, HALF, Cost
from mudg_core.plan.workload import Workload

FITS = {"routed": 1, "spilled": 2, "auto": 3}  # `spilled` fits again after spilling
ROUTERS = {"routed": 1, "spilled": 1, "auto": 2}
SPILLED = ("spilled", "auto")
WEIGHT_PASSES = 16  # of a step: two products, and Adam's reads and writes, in float64
SCORE_PASSES = 12  # of a step: softmax, forward and back, in float64
SORT_PASSES = 10
PLACE = 16  # a row and its cell
VOTE = 24  # row, cell, weight
NEIGHBOR = 12  # a row and its cosine
FIRST = 12  # a text's first cell, and how sure the router is


def costs(work: Workload) -> list[Cost]:
    variant = work.settings.index.variant
    routed = [router(work)] if variant in FITS else []
    return [*routed, spill(work)] if variant in SPILLED else routed


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
        stored=kept,
    )


def spill(work: Workload) -> Cost:
    """Sorting votes: of all texts' neighbours once, and of those found in each shard where its part is
    written. The second homes themselves are in the size of the index."""
    shards = -(-work.pair_images // work.block)
    votes, places = VOTE * work.pairs * NEIGHBORS, PLACE * work.rows
    return Cost(
        "spill",
        flop=0,
        moved=SORT_PASSES * (votes * (1 + shards) + 2 * places),
        read=NEIGHBOR * work.pairs * shards * (NEIGHBORS + 1) + places,
        written=0,
        memory=2 * (votes + places),
        stored=0,
    )
