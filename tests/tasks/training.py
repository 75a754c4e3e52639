"""A training stage small enough for tests, and a process that runs it: arguments SETTINGS RECIPE."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mudg_core.errors import MudgError
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries, write_queries
from mudg_core.target.spec import Target
from tasks.code import CODE
from tasks.executors.in_process import ThreadHost
from tasks.policy import build_batch
from tasks.train import train
from tests.support.training_sets import make_dataset

TARGET = Target(name="things", classes=("cat", "car", "sea", "dog", "bus"))


def settings_at(folder: Path, **changes: Any) -> Settings:
    base: dict[str, Any] = {"batch_size": 6, "learning_rate": 0.01, "blocks": 1, "ema": 0.5}
    storage = {"url": f"file://{folder}/store", "cache_dir": str(folder / "cache")}
    return Settings().replace({"storage": storage, "train": base | changes})


def prepared(settings: Settings) -> Recipe:
    """Of the model that is trained on ten images."""
    store, made = (
        ArtifactStore(settings.storage),
        of_descriptors(TARGET, "random", ["which is wet", "which is old"]),
    )

    def write(folder: Path) -> Facts:
        write_queries(
            Queries.of(TARGET, made), made, folder, lambda texts: np.zeros((len(texts), 2), np.float32)
        )
        return Facts({})

    queries = store.build(Recipe(stage="queries", algorithm=9, settings={}, parents={}), write)
    dataset = make_dataset(store, classes=TARGET.classes)
    return train.recipe(settings, {"dataset": dataset, "queries": queries, "seed": 0})


def built(settings: Settings, recipe: Recipe) -> ArtifactRef:
    """As a worker does it: on one thread, because how sums are rounded depends on them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return build_batch("tasks.train:train", settings, [recipe], "", CODE, ThreadHost())[0]
    finally:
        torch.set_num_threads(threads)


def main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s", force=True)
    try:
        built(Settings.model_validate_json(sys.argv[1]), Recipe.model_validate_json(sys.argv[2]))
    except MudgError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from error


if __name__ == "__main__":
    main()
