"""Plain k-means with its own best number of cells: what it reads with ours need not be the least.

More cells mean fewer vectors read and more centroids compared, so the best number is that with the least of
both together for recall@1 of 0.9. It is chosen on tuning queries; what is told of it is of report queries.
Beside it, on the same world, stands what our build chooses with 512 cells, which are not swept.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.index.ours import CELLS, PAPER_ITERATIONS, Build, Data, placed, some_images, trials
from benchmarks.index.world import DIM
from benchmarks.parts import console
from mudg_core.index.coarse import Centring

MORE = (CELLS, 2 * CELLS, 4 * CELLS, 8 * CELLS, 16 * CELLS, 32 * CELLS)
IMAGES_PER_CELL = 39  # with fewer faiss warns of poor centroids
Row = dict[str, float]


def compare(data: Data, seed: int) -> dict[str, Any]:
    build = Build(data, seed)
    (own,) = trials(data, [build.chosen], "report")
    first, tenth = own.read_for_recall_at_1 or 1.0, own.read_for_recall_at_10 or 1.0
    ours = {"recall_at_1": first, "recall_at_10": tenth, "compared": first + CELLS / len(data.gallery)}
    return {"ours": {"chosen": build.chosen.name, **ours}, "kmeans": sweep(data, seed)}


def sweep(data: Data, seed: int, counts: Sequence[int] = MORE) -> dict[str, Any]:
    """Rows by number of cells, and the best of them; it ends where more cells have cost more."""
    rows: dict[str, Row] = {}
    for row in upwards(data, seed, counts):
        rows[f"{row['cells']:.0f}"] = row
    best = min(rows.values(), key=lambda row: row["tuning_compared"])
    return {"rows": rows, "best": best}


def upwards(data: Data, seed: int, counts: Sequence[int]) -> Iterator[Row]:
    least = float("inf")
    for cells in counts:
        if cells / len(data.gallery) > least:  # the centroids alone are more
            return
        row = tried(data, cells, seed)
        console.print(f"{cells:,} cells: {100 * row['tuning_compared']:.2f} % compared on tuning queries")
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


def line(worlds: list[dict[str, Any]]) -> dict[str, float]:
    """Means over worlds. Ratios are of all that is compared: vectors read and centroids."""
    best = [world["kmeans"]["best"] for world in worlds]
    same = [world["kmeans"]["rows"][str(CELLS)] for world in worlds]
    ours = [world["ours"] for world in worlds]
    return {
        "kmeans_best_cells": statistics.median(row["cells"] for row in best),
        "compared_ratio_kmeans_best_cells": _ratio(best, ours),
        "compared_ratio_kmeans_same_cells": _ratio(same, ours),
    }


def _ratio(theirs: list[Row], ours: list[Row]) -> float:
    ratios = [one["compared"] / two["compared"] for one, two in zip(theirs, ours, strict=True)]
    return statistics.mean(ratios)
