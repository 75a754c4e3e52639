"""Workloads and hardware with round numbers, so that a test can work out what it expects by hand."""

from __future__ import annotations

from typing import Any

from mudg_core.plan.hardware import Hardware
from mudg_core.plan.workload import Workload, workload
from mudg_core.settings import Settings

PAPER: dict[str, Any] = {
    "corpus": {"rows": 2_170_000_000, "rows_per_shard": 1_000_000, "image_size": 224},
    "encode": {"model": "ViT-L-14/openai"},
    "index": {"cells": 131_072, "code": "sq4", "variant": "paired", "iterations": 10},
    "dataset": {"per_class": 96},
    "train": {"model": "ViT-L-14/openai", "iterations": 300, "batch_size": 64},
}


def paper() -> Workload:
    return workload(Settings().replace(PAPER), queries=16_000, pair_images=20_000_000, pool=4_227)


def small(**areas: dict[str, Any]) -> Workload:
    """1000 rows of the demo model's 128 dimensions, in 10 cells, trained on 100 texts; parts of 200 rows."""
    tree: dict[str, Any] = {
        "corpus": {"rows": 1000, "rows_per_shard": 100},
        "index": {
            "variant": "paired",
            "cells": 10,
            "training_texts": 100,
            "iterations": 3,
            "rows_per_part": 200,
            "probes": 2,
        },
    }
    for area, values in areas.items():
        tree[area] = tree.get(area, {}) | values
    return workload(Settings().replace(tree))


def machine(**changes: Any) -> Hardware:
    """1 GFLOP/s (4 in half), 1 GB/s of memory, 1 GB/s of storage, 1 GB."""
    rates: dict[str, Any] = {
        "sgemm": 1,
        "half": 4,
        "memory_bandwidth": 1,
        "memory": 1,
        "storage_bandwidth": 1,
    }
    return Hardware(name="round", source="a test", **rates | changes)
