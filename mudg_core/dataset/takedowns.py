"""Images that were taken down: in training sets, in held-out sets beside them, and in what these made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.takedowns import Takedowns, read_takedowns, remember
from mudg_core.dataset.fetch_filter_refill import CHOSEN, SPARE
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.errors import MissingArtifactError
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.storage.browse import artifacts
from mudg_core.storage.manifest import Manifest

DATASET, HELD_OUT, MODEL, CLASSIFIER, REPORT = "dataset", "held-out", "model", "classifier", "report"
IMAGES = "images.parquet"


def takedowns_in_dataset(store: ArtifactStore, dataset: ArtifactRef, takedowns: Takedowns) -> list[int]:
    """Rows of a training set that were taken down; by their bytes too, which only candidates know."""
    return [row for row, outcome in _outcomes(store, dataset, takedowns).items() if outcome == CHOSEN]


def touched(store: ArtifactStore, takedowns: Takedowns) -> dict[str, int]:
    """Training sets, held-out sets, models, classifiers and reports (`stage/key`) that hold, learned from or
    may show such an image, and how many of them. A model trained without them is clean, and so is its
    classifier. A report also shows images that were tried and refused."""
    outcomes = {m.ref.place: _outcomes(store, m.ref, takedowns) for m in artifacts(store, DATASET)}
    rows = {name: [row for row in tried if tried[row] == CHOSEN] for name, tried in outcomes.items()}
    shown = {name: sum(one != SPARE for one in tried.values()) for name, tried in outcomes.items()}
    counts = {name: len(chosen) for name, chosen in rows.items()}
    for manifest in artifacts(store, HELD_OUT):
        counts[manifest.ref.place] = len(takedowns_in_dataset(store, manifest.ref, takedowns))
    for manifest in artifacts(store, MODEL):
        inputs = manifest.recipe.settings.get("inputs")
        without = inputs.get("without") if isinstance(inputs, dict) else None
        learned = {row for parent in _parents(manifest) for row in rows.get(parent, ())}
        counts[manifest.ref.place] = len(learned.difference(without if isinstance(without, list) else ()))
    for manifest in artifacts(store, CLASSIFIER):
        models = [name for name in _parents(manifest) if name.startswith(f"{MODEL}/")]
        counts[manifest.ref.place] = max((counts.get(name, 0) for name in models), default=0)
    for manifest in artifacts(store, REPORT):
        parents = (max(counts.get(name, 0), shown.get(name, 0)) for name in _parents(manifest))
        counts[manifest.ref.place] = max(parents, default=0)
    return {name: count for name, count in counts.items() if count}


def mark_touched(store: ArtifactStore, takedowns: Takedowns) -> None:
    """Marks all that has such an image. Whoever makes something while the list grows does it too, so that of
    both, whichever comes last sees the other's."""
    remember(store, Takedowns(marked=touched(store, takedowns)))


@contextmanager
def mark_new_takedowns(store: ArtifactStore) -> Iterator[None]:
    """For a run that makes models: what it has made by its end is marked if images that it began with were
    taken down meanwhile. A store where nobody asks pays one look at a pointer."""
    before = read_takedowns(store).ref
    try:
        yield
    finally:
        after = read_takedowns(store)
        if after.ref != before:
            mark_touched(store, after)


def _outcomes(store: ArtifactStore, dataset: ArtifactRef, takedowns: Takedowns) -> dict[int, str]:
    """Rows of all such images that a training set holds or might have held, and the outcome of each."""
    if not takedowns:
        return {}
    table = pq.read_table(store.file(dataset, PROVENANCE), columns=["row", "url", "outcome"])
    candidates = store.manifest(dataset).recipe.parents.get("found")
    rows: list[int] = []
    if isinstance(candidates, ArtifactRef):
        with suppress(MissingArtifactError):
            rows = takedowns.rows_in(store.file(candidates, IMAGES))
    known = np.isin(table.column("row").to_numpy(), rows)
    down = table.filter(pa.array(takedowns.matches(table) | known)).sort_by("row")
    return dict(zip(down.column("row").to_pylist(), down.column("outcome").to_pylist(), strict=True))


def _parents(manifest: Manifest) -> list[str]:
    return [parent.place for parent in manifest.recipe.all_parents()]
