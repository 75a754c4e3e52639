"""Images that were taken down: in training sets, in held-out sets beside them, and in what these made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.compute as pc
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
    return [row for row, outcome in _found(store, dataset, takedowns).items() if outcome == CHOSEN]


def touched(store: ArtifactStore, takedowns: Takedowns) -> dict[str, int]:
    """Training sets, held-out sets, models, classifiers and reports (`stage/key`) that hold, learned from or
    may show such an image, and how many of them. A model trained without them is clean, and so is its
    classifier. A report also shows images that were tried and refused."""
    found = {m.ref.place: _found(store, m.ref, takedowns) for m in artifacts(store, DATASET)}
    rows = {name: [row for row in told if told[row] == CHOSEN] for name, told in found.items()}
    shown = {name: sum(outcome != SPARE for outcome in told.values()) for name, told in found.items()}
    counts = {name: len(chosen) for name, chosen in rows.items()}
    for manifest in artifacts(store, HELD_OUT):
        counts[manifest.ref.place] = len(takedowns_in_dataset(store, manifest.ref, takedowns))
    for manifest in artifacts(store, MODEL):
        inputs = manifest.recipe.settings.get("inputs")
        without = inputs.get("without") if isinstance(inputs, dict) else None
        learned = {row for parent in _names(manifest) for row in rows.get(parent, ())}
        counts[manifest.ref.place] = len(learned.difference(without if isinstance(without, list) else ()))
    for manifest in artifacts(store, CLASSIFIER):
        trained = [name for name in _names(manifest) if name.startswith(f"{MODEL}/")]
        counts[manifest.ref.place] = max((counts.get(name, 0) for name in trained), default=0)
    for manifest in artifacts(store, REPORT):
        parents = (max(counts.get(name, 0), shown.get(name, 0)) for name in _names(manifest))
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


def _found(store: ArtifactStore, dataset: ArtifactRef, takedowns: Takedowns) -> dict[int, str]:
    """Rows of all such images that a training set holds or might have held, and what became of each."""
    if not takedowns:
        return {}
    table = pq.read_table(store.file(dataset, PROVENANCE), columns=["row", "url", "outcome"])
    known = pa.array(_candidates(store, store.manifest(dataset), takedowns), pa.int64())
    same = pc.is_in(table.column("row"), known).to_numpy(zero_copy_only=False)
    found = table.filter(pa.array(takedowns.matches(table) | same)).sort_by("row")
    return dict(zip(found.column("row").to_pylist(), found.column("outcome").to_pylist(), strict=True))


def _names(manifest: Manifest) -> list[str]:
    return [parent.place for parent in manifest.recipe.all_parents()]


def _candidates(store: ArtifactStore, dataset: Manifest, takedowns: Takedowns) -> list[int]:
    found = dataset.recipe.parents.get("found")
    if isinstance(found, ArtifactRef):
        with suppress(MissingArtifactError):
            return takedowns.rows_in(store.file(found, IMAGES))
    return []
