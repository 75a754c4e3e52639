"""A picture of what selection did, made once for each training set that is shown."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core.dataset.fetch_filter_refill import CHOSEN
from mudg_core.dataset.image_map import MAP, draw_map
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.encode.shard import gather_images
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.queries import LABELS
from tasks.coarse import open_shards
from tasks.policy import Work, stage


@stage("map", algorithm=2)
def place_images(
    work: Work,
    *,
    labels: ArtifactRef,
    dataset: ArtifactRef,
    queries: ArtifactRef,
    embeddings: list[ArtifactRef],
) -> Facts:
    """A few of the candidates as points, near each other if the index model finds them alike."""
    labelled = pq.read_table(work.store.file(labels, "labels.parquet"), columns=["row", "label"])
    tried = pq.read_table(work.store.file(dataset, PROVENANCE), columns=["row", "outcome"])
    chosen = tried.filter(pc.equal(tried.column("outcome"), CHOSEN)).column("row").to_numpy()
    shards = open_shards(work, embeddings)
    made = draw_map(
        labelled.column("row").to_numpy(),
        labelled.column("label").to_numpy(),
        chosen,
        lambda rows: gather_images(shards, rows),
        np.load(work.store.file(queries, LABELS), allow_pickle=False),
    )
    made.write(work.scratch / MAP)
    return Facts({"points": len(made.row), "images": made.images})
