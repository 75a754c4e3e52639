"""Plain k-means with its own best number of cells: what it reads with ours need not be the least.

More cells mean fewer vectors read and more centroids compared, so the best number is that with the least of
both together for recall@1 of 0.9. It is chosen on tuning queries; what is told of it is of report queries.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.index.ours import CELLS, PAPER_ITERATIONS, Data, placed, some_images, trials
from benchmarks.index.world import DIM
from mudg_core.index.coarse import Centring

MORE = (CELLS, 2 * CELLS, 4 * CELLS, 8 * CELLS, 16 * CELLS, 32 * CELLS)
IMAGES_PER_CELL = 39  # with fewer faiss warns of poor centroids
Row = dict[str, float]


def sweep(data: Data, seed: int, counts: Sequence[int] = MORE) -> dict[str, Any]:
    """Rows by number of cells, and the best of them; it ends where more cells have cost more."""
    rows: dict[str, Row] = {}
    for row in upwards(data, seed, counts):
        rows[f"{row['cells']:.0f}"] = row
    best = min(rows.values(), key=lambda row: row["tuning_compared"])
    return {"rows": rows, "best": best, "images": len(data.gallery)}


def upwards(data: Data, seed: int, counts: Sequence[int]) -> Iterator[Row]:
    least = float("inf")
    for cells in counts:
        row = tried(data, cells, seed)
        yield row
        if row["tuning_compared"] > least:
            return
        least = row["tuning_compared"]


def tried(data: Data, cells: int, seed: int) -> Row:
    """Shares of the images for recall of 0.9: read, and compared, which counts the centroids too."""
    count = min(len(data.gallery), max(len(data.training), IMAGES_PER_CELL * cells))
    images, zero = some_images(data, count, seed), np.zeros(DIM, np.float32)
    plain = placed("kmeans", data, Centring(zero, zero), images, images, cells, PAPER_ITERATIONS, seed)
    reads = {kind: trials(data, [plain], kind)[0] for kind in ("tuning", "report")}
    centroids = cells / len(data.gallery)
    first = {kind: trial.read_for_recall_at_1 or 1.0 for kind, trial in reads.items()}
    return {
        "cells": cells,
        "trained_on": count,
        "recall_at_1": first["report"],
        "recall_at_10": reads["report"].read_for_recall_at_10 or 1.0,
        "compared": first["report"] + centroids,
        "tuning_compared": first["tuning"] + centroids,
    }


def line(sweeps: list[dict[str, Any]]) -> dict[str, float]:
    best = [found["best"] for found in sweeps]
    return {
        "kmeans_best_cells": statistics.median(row["cells"] for row in best),
        "kmeans_best_cells_read": statistics.mean(row["recall_at_1"] for row in best),
        "kmeans_best_cells_compared": statistics.mean(row["compared"] for row in best),
    }
