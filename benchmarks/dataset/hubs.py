"""Labels made into hubs, and what they get then.

A hub in the paper's sense is a label whose text is close to a great many images, whatever is on them. So one
label at a time has its queries moved towards the mean image, which brings them closer to all images at once,
and everything is searched and labelled again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import faiss
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mudg_core.dataset.candidates import flatten
from mudg_core.dataset.pseudo_labels import pseudo_label
from mudg_core.index.ivf import Hits
from mudg_core.index.vectors import normalised

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
WAYS = ("rank", "cosine")
PULL = 0.2  # length of the step towards the mean image, of queries of length 1


def made_hubs(
    images: Float32, queries: Float32, labels: Int64, neighbors: int, pull: float = PULL
) -> dict[str, list[float]]:
    """For each label, by each way of labelling: images as a hub over images before, less one."""
    search = faiss.IndexFlatIP(images.shape[1])
    search.add(images)
    mean = images.mean(axis=0)
    closer = normalised(queries + pull * mean / np.linalg.norm(mean))
    before, after = (_found(search, side, neighbors) for side in (queries, closer))
    usual = {way: _counts(before, labels, way) for way in WAYS}
    excess: dict[str, list[float]] = {way: [] for way in WAYS}
    for label in range(int(labels.max()) + 1):
        moved = (labels == label)[:, None]
        hits = Hits(np.where(moved, after.rows, before.rows), np.where(moved, after.cosines, before.cosines))
        for way in WAYS:
            excess[way].append(float(_counts(hits, labels, way)[label] / usual[way][label] - 1))
    return excess


def fewer(excess: Mapping[str, Sequence[float]]) -> float:
    """Share of labels that get less by rank than by cosine, once they are hubs."""
    by_rank, by_cosine = (np.array(excess[way]) for way in WAYS)
    return float((by_rank < by_cosine).mean())


def _found(search: faiss.IndexFlatIP, queries: Float32, neighbors: int) -> Hits:
    cosines, rows = search.search(queries, neighbors)
    return Hits(rows, cosines)


def _counts(hits: Hits, labels: Int64, way: str) -> Int64:
    table: pa.Table = flatten(hits, labels)
    return np.bincount(
        pseudo_label(table, way, 0, 0).column("label").to_numpy(), minlength=int(labels.max()) + 1
    )
