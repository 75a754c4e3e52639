"""Selection: a balanced and diverse choice among the images of each label.

The result is an ordered plan and not a final choice: each group of alternatives has a quota, and who comes
next when a link turns out to be dead is decided here, by the seed, and not by what happened to fail.
"""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]


def plan_selection(
    labelled: pa.Table, features: Float32, *, method: str, per_class: int, seed: int
) -> pa.Table:
    """The labelled images with three more columns: group (global number), quota of the group, and turn.

    `cluster` (paper): k-means into `per_class` groups on index features, one image of each, at random.
    `nearest` (the baseline): one group a label, best ranks first.
    """
    labels = labelled.column("label").to_numpy()
    group, quota, turn = (np.zeros(len(labels), dtype=np.int64) for _ in range(3))
    first_group = 0
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if method == "cluster":
            own = _clusters(features[members], per_class, seed + int(label))
            turns = _random_turns(own, np.random.default_rng([seed, int(label)]))
            own_quota = 1
        else:
            own = np.zeros(len(members), dtype=np.int64)
            ranks, cosines = (labelled.column(name).to_numpy()[members] for name in ("rank", "cosine"))
            turns = np.argsort(np.lexsort((-cosines, ranks)))
            own_quota = per_class
        group[members], quota[members], turn[members] = own + first_group, own_quota, turns
        first_group += int(own.max()) + 1
    table = labelled
    for name, values in (("group", group), ("quota", quota), ("turn", turn)):
        table = table.append_column(name, pa.array(values))
    return table


def _clusters(features: Float32, count: int, seed: int) -> Int64:
    """Cluster numbers from 0; a label with no more images than clusters keeps them all, each alone."""
    if len(features) <= count:
        return np.arange(len(features), dtype=np.int64)
    from sklearn.cluster import KMeans  # here: it takes seconds to load
    from sklearn.exceptions import ConvergenceWarning

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct images than clusters
        found = KMeans(count, n_init=1, max_iter=50, random_state=seed % 2**31).fit_predict(features)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _random_turns(groups: Int64, random: np.random.Generator) -> Int64:
    """Each member's place in a random order of its own group."""
    order = np.lexsort((random.random(len(groups)), groups))
    counts = np.bincount(groups)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    turns = np.empty(len(groups), dtype=np.int64)
    turns[order] = np.arange(len(groups)) - starts
    return turns
