"""Forgotten images in training sets, and in what was made from these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core.corpus.forgotten import Forgotten, read_forgotten, remember
from mudg_core.dataset.build import CHOSEN
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.errors import MissingArtifactError
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.storage.browse import artifacts
from mudg_core.storage.condemned import name_of
from mudg_core.storage.manifest import Manifest

DATASET, MODEL, CLASSIFIER, REPORT = "dataset", "model", "classifier", "report"
IMAGES = "images.parquet"


def forgotten_in(store: ArtifactStore, dataset: ArtifactRef, forgotten: Forgotten) -> list[int]:
    """Rows of a training set that are of forgotten images; by their bytes too, which only candidates know."""
    if not forgotten:
        return []
    columns = ["row", "url", "outcome"]
    table = pq.read_table(store.file(dataset, PROVENANCE), columns=columns)
    chosen = table.filter(pc.equal(table.column("outcome"), CHOSEN))
    known = set(chosen.column("row").filter(forgotten.matches(chosen)).to_pylist())
    known |= set(_candidates(store, store.manifest(dataset), forgotten))
    return sorted(known & set(chosen.column("row").to_pylist()))


def touched(store: ArtifactStore, forgotten: Forgotten) -> dict[str, int]:
    """Training sets, models, classifiers and reports (`stage/key`) that hold, learned from or may show such
    an image, and how many of them. A model trained without them is clean, and so is its classifier."""
    rows = {name_of(m.ref): forgotten_in(store, m.ref, forgotten) for m in artifacts(store, DATASET)}
    counts = {name: len(found) for name, found in rows.items()}
    for manifest in artifacts(store, MODEL):
        inputs = manifest.recipe.settings.get("inputs")
        without = inputs.get("without") if isinstance(inputs, dict) else None
        learned = {row for parent in _names(manifest) for row in rows.get(parent, ())}
        counts[name_of(manifest.ref)] = len(learned.difference(without if isinstance(without, list) else ()))
    for manifest in artifacts(store, CLASSIFIER):
        trained = [name for name in _names(manifest) if name.startswith(f"{MODEL}/")]
        counts[name_of(manifest.ref)] = max((counts.get(name, 0) for name in trained), default=0)
    for manifest in artifacts(store, REPORT):
        counts[name_of(manifest.ref)] = max((counts.get(name, 0) for name in _names(manifest)), default=0)
    return {name: count for name, count in counts.items() if count}


def mark_touched(store: ArtifactStore, forgotten: Forgotten) -> None:
    """Marks all that has such an image. Whoever makes something while the list grows does it too, so that of
    both, whichever comes last sees the other's."""
    remember(store, Forgotten(marked=touched(store, forgotten)))


@contextmanager
def marked_if_forgotten(store: ArtifactStore) -> Iterator[None]:
    """For a run that makes models: what it has made by its end is marked if images that it began with were
    forgotten meanwhile. A store where nobody asks pays one look at a pointer."""
    before = read_forgotten(store).ref
    try:
        yield
    finally:
        after = read_forgotten(store)
        if after.ref != before:
            mark_touched(store, after)


def _names(manifest: Manifest) -> list[str]:
    return [name_of(parent) for parent in manifest.recipe.all_parents()]


def _candidates(store: ArtifactStore, dataset: Manifest, forgotten: Forgotten) -> list[int]:
    found = dataset.recipe.parents.get("found")
    if isinstance(found, ArtifactRef):
        with suppress(MissingArtifactError):
            return forgotten.rows_in(store.file(found, IMAGES))
    return []
