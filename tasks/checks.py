"""What a user should be warned of: classes that the corpus lacks, that are nearly one or have few images,
descriptors that Eq. 4 did not choose, and evaluation images among the candidates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from mudg_core.dataset import absent_classes, confusable_classes, leaks
from mudg_core.dataset.absent_classes import HITS, Presence, mean_vector
from mudg_core.dataset.candidates import Features
from mudg_core.dataset.warning import TargetWarning, warn_of_descriptors, warn_of_few, write_warnings
from mudg_core.encode.shard import gather_images, gather_texts
from mudg_core.encode.weights import weights_digest
from mudg_core.evaluate.images import encoded_images
from mudg_core.evaluate.match import warn_of_unmatched
from mudg_core.index.training_data import Samples
from mudg_core.index.vectors import Float32, Int64
from mudg_core.index.version import check_model, load_version
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.queries import LABELS, SPEC, read_features
from tasks.coarse import Refs, open_shards, read_queries
from tasks.policy import Work, stage
from tasks.search import search_parts

BACKGROUND = 500  # random captions that a class is compared with, at most


@stage("evaluation-prints", settings=("encode.batch_size",), weights=("encode.model",), gpu=True)
def fingerprint_evaluation(work: Work, *, evaluation: ArtifactRef) -> Facts:
    """What evaluation images are compared by with candidates, once for all queries that look for them. Their
    labels are not read."""
    clip, settings = work.encoder(work.settings.encode.model), work.settings
    samples = encoded_images(work.store.folder(evaluation))
    prints = leaks.evaluation_pictures(samples, clip, settings.encode.batch(settings.compute.device))
    prints.write(work.scratch)
    return Facts({"images": len(prints.names)})


@stage("leaks", algorithm=3)
def find_leaks(work: Work, *, found: ArtifactRef, prints: ArtifactRef, embeddings: Refs) -> Facts:
    """Candidates that are evaluation images too."""
    theirs = leaks.Pictures.read(work.store.folder(prints))
    images = pq.read_table(work.store.file(found, "images.parquet"))
    mine = leaks.candidate_pictures(images, partial(gather_images, open_shards(work, embeddings)))
    table = leaks.find_leaks(mine, theirs)
    pq.write_table(table, work.scratch / leaks.LEAKS)
    why = table.column("why").to_pylist()
    counts = {name: why.count(name) for name in (leaks.SAME_FILE, leaks.COPY, leaks.LOOKALIKE)}
    return Facts({"candidates": images.num_rows, "evaluation": len(theirs.names), **counts})


@stage(
    "warnings",
    algorithm=3,
    settings=(
        "dataset.absent_below",
        "dataset.few_share",
        "dataset.per_class",
        "dataset.exclude_leaks",
        "index.probes",
        "index.mass",
        "index.gain",
        "index.rerank",
    ),
)
def check_classes(
    work: Work,
    *,
    queries: ArtifactRef,
    index: ArtifactRef,
    embeddings: Refs,
    found: ArtifactRef,
    labels: ArtifactRef,
    datasets: Refs | None = None,
    leaked: ArtifactRef | None = None,
    evaluation: ArtifactRef | None = None,
) -> Facts:
    """All warnings of a target. `datasets` are its training sets, one a seed, and `leaked` its leaks."""
    settings = work.settings.dataset
    spec = json.loads(work.store.file(queries, SPEC).read_text())
    names = spec["classes"]
    searched = _search(work, read_features(work.store.folder(queries), LABELS), index, embeddings)
    presence = searched.presence()
    missing = presence.absent(settings.absent_below)
    pairs = [pair for pair in searched.confusable_pairs() if not missing[[pair.one, pair.other]].any()]
    hits = pq.read_table(work.store.file(found, "hits.parquet"))
    labelled = pq.read_table(work.store.file(labels, "labels.parquet"))
    warnings = absent_classes.warn_of_absent(names, presence, settings.absent_below)
    warnings += confusable_classes.warn_of_confusable_classes(
        names, confusable_classes.count_swaps(pairs, hits, labelled)
    )
    warnings += warn_of_descriptors(spec)
    warnings += _few(work, names, labelled.column("label").to_numpy(), datasets or [])
    if leaked is not None:
        warnings += leaks.warn_of_leaks(
            pq.read_table(work.store.file(leaked, leaks.LEAKS)), settings.exclude_leaks
        )
    if evaluation is not None:
        facts: Any = work.store.manifest(evaluation).facts
        warnings += warn_of_unmatched(facts.get("unknown", []), facts.get("empty", []))
    write_warnings(warnings, work.scratch)
    shares = {"share": presence.share.tolist(), "support": presence.support.tolist()}
    (work.scratch / "presence.json").write_text(json.dumps({"classes": names, **shares}, indent=1))
    kinds = [item.kind for item in warnings]
    return Facts(
        {"classes": len(names), "warnings": {kind: kinds.count(kind) for kind in sorted(set(kinds))}}
    )


@dataclass(frozen=True)
class _Searched:
    """What the plain prompts of a target, and random captions of the corpus, find in the index."""

    labels: Float32
    hits: Int64
    captions: Float32
    rows: Int64
    caption_hits: Int64
    pictures: Float32
    images: Features
    texts: Features

    def presence(self) -> Presence:
        centre = mean_vector(self.captions)
        where = (self.images, self.texts, centre)
        known = absent_classes.background_support(self.captions, self.rows, self.caption_hits, HITS, *where)
        return absent_classes.presence(self.labels, self.hits, known, centre, self.texts)

    def confusable_pairs(self) -> list[confusable_classes.ConfusablePair]:
        means = confusable_classes.mean_images(self.hits, self.images)
        return confusable_classes.find_confusable_classes(
            self.labels, self.hits, means, mean_vector(self.pictures)
        )


def _search(work: Work, labels: Float32, index: ArtifactRef, embeddings: Refs) -> _Searched:
    """One search for prompts and captions alike, so that what the index misses it misses for both."""
    version = load_version(work.store, index)
    check_model(work.store, version, weights_digest(work.settings.encode.model))
    captions, rows, pictures = _sampled(read_queries(work.store, version.samples))
    queries = np.concatenate([labels, captions])
    hits = search_parts(work, version, queries, 2 * HITS).rows
    own, theirs = hits[: len(labels), :HITS], hits[len(labels) :]
    shards = open_shards(work, embeddings)
    gather = (partial(gather_images, shards), partial(gather_texts, shards))
    return _Searched(labels, own, captions, rows, theirs, pictures, *gather)


def _sampled(samples: Samples) -> tuple[Float32, Int64, Float32]:
    """Captions that the index has not seen in training, their rows, and some images."""
    captions, rows = samples.of("report"), samples.rows[samples.counts.part("report")]
    return captions[:BACKGROUND], rows[:BACKGROUND], samples.of("images")


def _few(work: Work, names: list[str], labels: Int64, datasets: Refs) -> list[TargetWarning]:
    """Of several seeds the poorest counts."""
    settings = work.settings.dataset
    made = [work.store.manifest(ref).facts["per_label"] for ref in datasets]
    chosen = np.min([np.asarray(counts, np.int64) for counts in made], axis=0) if made else None
    there = np.bincount(labels, minlength=len(names))
    few = None if chosen is None else np.pad(chosen, (0, len(names) - len(chosen))).tolist()
    return warn_of_few(names, there.tolist(), few, settings.per_class, settings.few_share)
