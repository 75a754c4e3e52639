"""Which rows of the corpus are of images that were taken down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mudg_core.corpus.takedowns import load_takedowns, read_takedowns
from mudg_core.dataset.takedowns import takedowns_in_dataset
from mudg_core.encode.shard import METADATA
from mudg_core.index.version import IndexVersion
from mudg_core.storage import ArtifactRef, Facts
from tasks.index import removed_from
from tasks.policy import Work, stage
from tasks.run import Run

ROWS = "rows.npy"


@stage("forgotten-rows")
def find_takedowns(work: Work, *, embedding: ArtifactRef, forgotten: ArtifactRef) -> Facts:
    """Rows of one shard. Kept, as every build asks again, and a list changes rarely."""
    rows = load_takedowns(work.store, forgotten).rows_in(work.store.file(embedding, METADATA))
    np.save(work.scratch / ROWS, np.array(rows, np.int64))
    return Facts({"rows": len(rows)})


def takedown_rows(run: Run, embeddings: Sequence[ArtifactRef]) -> list[int]:
    """Of all these shards; a store where nobody ever asked pays nothing."""
    takedowns = read_takedowns(run.store)
    if not takedowns or takedowns.ref is None:
        return []
    jobs = [find_takedowns.job(embedding=ref, forgotten=takedowns.ref) for ref in embeddings]
    found = find_takedowns.map(run, jobs, per_task=run.shards_per_task(len(jobs)))
    some = [ref for ref in found if run.store.manifest(ref).facts["rows"]]
    return [int(row) for ref in some for row in np.load(run.store.file(ref, ROWS), allow_pickle=False)]


def takedowns_in_index(run: Run, version: IndexVersion) -> list[int]:
    """Rows taken down that a version has all the same: somebody went back to an older one."""
    return sorted(set(takedown_rows(run, version.embeddings)) - set(removed_from(run.store, version.index)))


def takedowns_in_training_set(run: Run, dataset: ArtifactRef) -> list[int]:
    """Rows of a training set that nothing may be trained on any more."""
    return takedowns_in_dataset(run.store, dataset, read_takedowns(run.store))


def exclusion(rows: list[int]) -> list[int] | None:
    """As the input `without` of a stage: none where there is nothing to leave out, so that keys stay as they
    were."""
    return rows or None
