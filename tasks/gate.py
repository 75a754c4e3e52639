"""A model and images that were held out to a verdict: is it better than zero-shot, as far as one can tell
without labels?"""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pyarrow.parquet as pq

from mudg_core.dataset.held_out import plan_held_out
from mudg_core.dataset.training_set import PROVENANCE, read_training_set
from mudg_core.encode.shard import gather_images
from mudg_core.evaluate.gate import VERDICT, judge, unjudged
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.queries import read_queries
from tasks.coarse import Refs, open_shards
from tasks.fetch import FETCH, fill_plan
from tasks.policy import Work, stage
from tasks.run import counted


@stage(
    "held-out",
    algorithm=2,
    settings=("gate.per_class", "gate.images", *FETCH),
    weights=("encode.model",),
    gpu=True,
)
def hold_out(
    work: Work,
    *,
    dataset: ArtifactRef,
    found: ArtifactRef,
    queries: ArtifactRef,
    shards: Refs,
    embeddings: Refs,
    seed: int,
) -> Facts:
    """Labelled images that were not needed for a training set, fetched and filtered as that was, in the same
    layout. There may be none."""
    tried = pq.read_table(work.store.file(dataset, PROVENANCE))
    images = pq.read_table(work.store.file(found, "images.parquet"), columns=["row", "sha256", "phash"])
    classes = len(read_queries(work.store.folder(queries)).target.classes)
    each = max(1, min(work.settings.gate.per_class, work.settings.gate.images // classes))
    gather = partial(gather_images, open_shards(work, embeddings))
    plan = plan_held_out(tried, images, gather, each, seed)
    filled = fill_plan(work, plan, found, queries, shards, required=False)
    counts = np.bincount(filled.chosen().column("label"), minlength=classes)
    return Facts({"images": int(counts.sum()), "classes": int((counts > 0).sum()), "spare": plan.num_rows})


@stage(
    "gate",
    algorithm=2,
    settings=("gate.alphas", "gate.margin", "train.temperature", "evaluate.batch_size"),
    weights=("train.model",),
    gpu=True,
)
def gate(work: Work, *, model: ArtifactRef, queries: ArtifactRef, held_out: ArtifactRef) -> Facts:
    """The verdict on one model, as JSON."""
    from mudg_core.evaluate.classifier import logits_between  # torch: not where nothing is computed

    settings = work.settings
    if work.store.manifest(held_out).facts["images"]:
        clip = work.clip(settings.train.model)
        pixels, labels = read_training_set(work.store.folder(held_out), clip)
        prompts = read_queries(work.store.folder(queries)).target.prompts()
        weights = (settings.train.temperature, settings.evaluate.batch_size)
        alphas = counted(settings.gate.alphas, len(settings.gate.alphas), work.progress)
        found = logits_between(clip, work.store.folder(model), prompts, pixels, alphas, *weights)
        verdict = judge(found, labels, settings.gate.margin)
    else:
        verdict = unjudged(0, "No labelled image was left beside the training set.")
    body = verdict.to_json()
    (work.scratch / VERDICT).write_text(json.dumps(body, indent=1))
    return Facts({name: body[name] for name in ("alpha", "better", "images")})
