"""What it costs to find most nearest images through an index instead of exactly, and what that saves."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from benchmarks.index.ours import CELLS, KEEP, NEAREST, Data, Ours, Shard, Variant, trials
from mudg_core.encode.shard import EmbeddingShard
from mudg_core.index.neighbors import nearest_through

EXACT, PROBES = 0.1, 0.1  # the defaults of `index.bootstrap_texts` and `index.bootstrap_probes`


def measure(data: Data, exact: Variant) -> dict[str, Any]:
    """The same variant, trained on bootstrapped pairs and on exact ones."""
    few = int(len(data.training) * EXACT)
    small = Data(data.gallery, data.training[:few], data.tuning, data.report)
    guide = Ours(small, 0, data.truth["training"][:few]).centred.coarse
    shard = Shard(data.gallery, data.gallery, np.arange(len(data.gallery)))
    rest = nearest_through(guide, data.training[few:], cast(EmbeddingShard, shard), KEEP, PROBES)
    pairs = np.concatenate([data.truth["training"][:few], rest.rows[:, :NEAREST]])
    found = (trials(data, [v], "report")[0] for v in (exact, Ours(data, 0, pairs).centred))
    reads = [one.read_for_recall_at_1 or 1.0 for one in found]
    right = float((pairs[few:, 0] == data.truth["training"][few:, 0]).mean())
    return {
        "nearest_found": right,
        "work": EXACT + (1 - EXACT) * PROBES + CELLS / len(data.training),
        "read_over_exact": reads[1] / reads[0],
    }
