"""Images to judge a student by: candidates of a target that were labelled and not needed for training.

They come the same way as training images and are as balanced, so a student that has learnt its classes from
those should know these. Near copies of training images are left out: they would reward memorising.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mudg_core.dataset.candidates import Features
from mudg_core.dataset.cluster_selection import plan_selection
from mudg_core.dataset.fetch_filter_refill import CHOSEN, SPARE
from mudg_core.dataset.leaks import candidate_pictures, concat_pictures, find_leaks, without_rows
from mudg_core.dataset.pseudo_labels import COLUMNS
from mudg_core.dataset.selection_rules import Rule
from mudg_core.index.vectors import Int64

SPARES = 4  # times the images that are wanted of a class: some are copies, dead or unlike their query


def plan_held_out(tried: pa.Table, images: pa.Table, gather: Features, per_class: int, seed: int) -> pa.Table:
    """Which images to fetch, class by class in a random order, as `fetch_filter_refill` takes it.

    `tried` is a training set's provenance, `images` what is known of all candidates (row, sha256, phash).
    """
    spare = tried.filter(pc.equal(tried.column("outcome"), SPARE)).select(COLUMNS)
    plan = plan_selection(spare, gather, Rule("random", per_class, seed))
    plan = plan.filter(pc.less(plan.column("turn"), SPARES * per_class))
    chosen = tried.filter(pc.equal(tried.column("outcome"), CHOSEN)).column("row").to_numpy()
    return without_rows(plan, _copies(plan.column("row").to_numpy(), chosen, images, gather))


def _copies(rows: Int64, chosen: Int64, images: pa.Table, gather: Features) -> Int64:
    """Those of `rows` that look like a chosen one, whatever its label; chosen ones pass block by block."""
    if not len(rows) or not len(chosen):
        return np.zeros(0, np.int64)
    mine, theirs = (images.filter(pc.is_in(images.column("row"), pa.array(some))) for some in (rows, chosen))
    held = concat_pictures(candidate_pictures(mine, gather))
    copies = [find_leaks([held], block).column("row") for block in candidate_pictures(theirs, gather)]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *copies]))
