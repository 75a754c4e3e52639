"""The same question on embeddings of the demo corpus: trained towers instead of generated vectors.

Uses `mudg index build`, which goes on where an earlier run has stopped.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from mudg_core.index.part import spill
from mudg_core.index.training_data import NEIGHBORS
from mudg_core.index.variants import trial
from mudg_core.index.version import current_version, open_coarse
from mudg_core.settings import load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore
from tasks.coarse import merged_neighbors, read_placement, read_queries, read_votes

MUDG = Path(sys.executable).with_name("mudg")


def measure(folder: Path, rows: int, cells: int, seconds: float) -> dict[str, Any]:
    """What plain k-means reads for R@1 = 90 over what the chosen variant reads, on report captions."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {
        "corpus.source": "demo",
        "corpus.rows": rows,
        "corpus.rows_per_shard": 10_000,
        "index.cells": cells,
    }
    sizes |= {"index.report_queries": 4000, "index.tuning_queries": 4000, "index.training_texts": 48_000}
    flags = [part for name, value in sizes.items() for part in ("--set", f"{name}={value}")]
    subprocess.run([MUDG, "index", "build", *flags], cwd=folder, check=True, timeout=seconds)
    settings = load_settings(overrides={"storage": {"url": f"file://{folder.absolute()}/.mudg"}})
    return _ratios(ArtifactStore(settings.storage), settings.index.gain, settings.index.spill)


def _ratios(store: ArtifactStore, gain: float, share: float) -> dict[str, Any]:
    version = current_version(store)
    choice = store.manifest(version.index).recipe.parents["choice"]
    assert isinstance(choice, ArtifactRef)
    recipe, samples = store.manifest(choice).recipe, read_queries(store, version.samples)
    parents: dict[str, Any] = dict(recipe.parents)
    inputs: Any = recipe.settings["inputs"]
    near = merged_neighbors(store, parents["neighbors"])
    truth = near.rows[samples.counts.part("report"), :NEIGHBORS]
    training = near.rows[samples.counts.part("training"), :NEIGHBORS]
    read = {}
    for name, ref in zip(inputs["variants"], parents["coarse"], strict=True):
        placed = read_placement(store, parents[f"cells_{name}"])
        if name == "spilled":
            placed = spill(placed, training, *read_votes(store, ref), share)
        found = trial(name, open_coarse(store, ref), placed, samples.of("report"), truth, gain)
        read[name] = found.read_for_recall_at_1
    chosen = version.variant
    return {
        "chosen": chosen,
        "read_for_recall_at_1": read,
        "ratio": (read["kmeans"] or 1) / (read[chosen] or 1),
    }
