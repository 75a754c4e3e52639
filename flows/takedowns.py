"""Rows that are taken out of an index, and that stay out of those that follow it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mudg_core.index.version import IndexVersion, current_version, shards_of
from mudg_core.storage import ArtifactRef
from mudg_core.storage.manifest import hash_of
from tasks import index as tasks
from tasks.corpus import draw_shard
from tasks.run import Run
from tasks.takedowns import takedown_rows


def without(run: Run, removed: Sequence[int], current: IndexVersion | None) -> ArtifactRef:
    """A version less some rows. Whoever takes rows out asks for nothing else, and may have other settings
    than those who built it: model, cells and shards stay, and only parts that hold such rows are made."""
    version = current or current_version(run.store)  # which says that there is none
    gone = {*removed, *tasks.removed_from(run.store, version.index), *takedown_rows(run, version.embeddings)}
    parts, jobs = list(version.parts), {}
    for number, ref in enumerate(version.parts):
        inputs = tasks.inputs_of(run.store, ref)
        here = tasks.rows_among(run.store, inputs["cells"], sorted(gone))
        if here != inputs["removed"]:
            jobs[number] = tasks.populate.job_like(inputs | {"removed": here})
    spill = run.store.manifest(version.parts[0]).recipe.settings["index.spill"]
    alike = Run(run.settings.replace({"index": {"spill": spill}}), run.records, run.part)
    for number, ref in zip(jobs, tasks.populate.map(alike, jobs.values()), strict=True):
        parts[number] = ref
    made = tasks.inputs_of(run.store, version.index)
    again = tasks.assemble.job_like(made | {"parts": parts, "removed": sorted(gone)})
    return tasks.assemble.map(run, [again])[0]


def already_removed(run: Run, current: IndexVersion | None, embeddings: Sequence[ArtifactRef]) -> list[int]:
    """Rows that the current version leaves out stay out, if their shard is still there: in another corpus
    the same number is another image."""
    gone = np.array(tasks.removed_from(run.store, current.index) if current else [], np.int64)
    if current is None or not len(gone):
        return []
    mine = {_origin(run, ref) for ref in shards_of(run.store, embeddings)}
    facts = [run.store.manifest(ref).facts for ref in current.shards if _origin(run, ref) in mine]
    spans = sorted((int(str(one["first_row"])), int(str(one["rows"]))) for one in facts)
    if not spans:
        return []
    first, rows = np.array(spans, np.int64).T
    place = np.searchsorted(first, gone, side="right") - 1
    there = (place >= 0) & (gone < (first + rows)[place])
    return [int(row) for row in gone[there]]


def _origin(run: Run, shard: ArtifactRef) -> str:
    """Where the rows of a shard come from: its place in the registry, however it was downloaded; or the demo
    world, however that was cut."""
    recipe = run.store.manifest(shard).recipe
    if isinstance(source := recipe.parents.get("shard"), ArtifactRef):
        return source.place
    if shard.stage == draw_shard.name:
        return hash_of({path: value for path, value in recipe.settings.items() if path != "inputs"})
    return shard.place
