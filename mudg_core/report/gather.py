"""Everything the report shows, read from the artifacts of a run. Older ones may lack some of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core import __version__
from mudg_core.corpus.shard_reader import ShardImages, open_images
from mudg_core.corpus.shards import read_members
from mudg_core.dataset.fetch_filter_refill import CHOSEN, DEAD, SPARE
from mudg_core.dataset.image_map import MAP, ClassMap
from mudg_core.dataset.pseudo_labels import HUBNESS, Hubness
from mudg_core.dataset.training_set import PROVENANCE, TAR
from mudg_core.dataset.warning import crowded, read_warnings
from mudg_core.evaluate.gate import VERDICT, Verdict
from mudg_core.evaluate.measures import summarise
from mudg_core.index.recall import Point
from mudg_core.report.data import (
    Descriptor,
    DomainScores,
    GalleryImage,
    IndexReport,
    LineageNode,
    ReportData,
    TargetReport,
    Timing,
)
from mudg_core.report.funnel import funnel_of
from mudg_core.report.seeds import measures_of
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest
from mudg_core.storage.browse import extent
from mudg_core.target.spec import Target

FEW_IMAGES = 4
REJECTED_PER_CLASS = 12
METHOD = "mudg"


@dataclass(frozen=True)
class TargetArtifacts:
    """The artifacts of one target; lists have one entry a seed."""

    target: Target
    queries: ArtifactRef
    candidates: ArtifactRef
    labels: ArtifactRef
    datasets: Sequence[ArtifactRef]
    models: Sequence[ArtifactRef]
    scores: Sequence[ArtifactRef]
    warnings: ArtifactRef | None = None
    map: ArtifactRef | None = None
    verdicts: Sequence[ArtifactRef] = ()


def gather(
    store: ArtifactStore,
    title: str,
    created: str,
    settings: dict[str, Any],
    targets: Sequence[TargetArtifacts],
    shards: Sequence[ArtifactRef],
    centroids: ArtifactRef,
    index: ArtifactRef,
    recall: ArtifactRef,
) -> ReportData:
    reports = tuple(gather_target(store, artifacts, shards) for artifacts in targets)
    manifests = _all_manifests(store, targets, index)
    return ReportData(
        title=title,
        created=created,
        version=__version__,
        profile=str(settings["profile"]),
        targets=reports,
        index=gather_index(store, index, centroids, recall),
        timings=tuple(_timings(manifests)),
        lineage=tuple(lineage_node(manifest) for manifest in manifests),
        settings=settings,
        notes=tuple(note for report in reports for note in _notes(report)),
    )


def gather_target(
    store: ArtifactStore, artifacts: TargetArtifacts, shards: Sequence[ArtifactRef]
) -> TargetReport:
    spec = _json_file(store, artifacts.queries, "queries.json")
    dataset = store.manifest(artifacts.datasets[0])
    per_label: Any = store.manifest(artifacts.labels).facts["per_label"]
    facts: Any = dataset.facts
    size, descriptors = len(artifacts.target.classes), set(spec["descriptors"])
    seeds = [_json_file(store, ref, "scores.json") for ref in artifacts.scores]
    return TargetReport(
        name=artifacts.target.name,
        description=artifacts.target.description,
        classes=artifacts.target.classes,
        template=artifacts.target.template,
        seeds=artifacts.target.seeds,
        scores=_scores(seeds),
        class_accuracy={arm: _class_accuracy(seeds, arm) for arm in (seeds[0] if seeds else ())},
        descriptors=tuple(
            Descriptor(item["descriptor"], item["loss"], item["rise"], item["descriptor"] in descriptors)
            for item in spec["scored"]
        ),
        groups=crowded(spec["clusters"]),
        labels_before=tuple(per_label + [0] * (size - len(per_label))),
        labels_after=tuple(facts["per_label"] + [0] * (size - len(facts["per_label"]))),
        funnel=funnel_of(store, artifacts.candidates, artifacts.labels, artifacts.datasets[0]),
        outcomes={name: n for name, n in facts["outcomes"].items() if name != SPARE},
        gallery=tuple(_gallery(store, artifacts, spec["prompts"], shards)),
        losses=tuple(tuple(_json_file(store, model, "losses.json")) for model in artifacts.models),
        initial_share=float(str(store.manifest(artifacts.models[0]).facts["initial_share"])),
        min_cosine=min_cosine_of(dataset),
        warnings=tuple(read_warnings(store.folder(artifacts.warnings))) if artifacts.warnings else (),
        hubness=hubness_of(store, artifacts.labels),
        map=ClassMap.read(store.file(artifacts.map, MAP)) if artifacts.map else None,
        measures=measures_of(seeds),
        verdicts=tuple(Verdict.from_json(_json_file(store, ref, VERDICT)) for ref in artifacts.verdicts),
    )


def min_cosine_of(dataset: Manifest) -> float | None:
    """The threshold of the filter, if it can refuse anything."""
    value = dataset.recipe.settings.get("dataset.min_cosine")
    return value if isinstance(value, float) and value > -1 else None


def hubness_of(store: ArtifactStore, labels: ArtifactRef) -> Hubness | None:
    """Of labels that are new enough to have it."""
    if store.manifest(labels).entry(HUBNESS) is None:
        return None
    return Hubness.from_json(store.file(labels, HUBNESS).read_text())


def gather_index(
    store: ArtifactStore, index: ArtifactRef, centroids: ArtifactRef, recall: ArtifactRef
) -> IndexReport:
    facts = store.manifest(index).facts
    history = _json_file(store, centroids, "history.json")
    points = map(Point.from_json, _json_file(store, recall, "recall.json")["text queries"])
    return IndexReport(
        rows=int(str(facts["rows"])),
        dim=int(str(facts["dim"])),
        cells=int(str(facts["cells"])),
        code=str(facts["code"]),
        method=str(facts["variant"]),
        recall_at_1={p.probes: p.recall_at_1.value for p in points if p.mass == 1},
        objectives=tuple((step["kmeans"], step["cross_modal"]) for step in history),
    )


def _scores(seeds: Sequence[dict[str, Any]]) -> dict[str, DomainScores]:
    """By arm; the score of averaged prompts under the arm's name with `_averaged`."""
    scores: dict[str, DomainScores] = {}
    for arm in seeds[0] if seeds else ():
        for way, suffix in (("single", ""), ("averaged", "_averaged")):
            summary: Any = summarise([seed[arm][way] for seed in seeds])
            scores[arm + suffix] = DomainScores(**summary)
    return scores


def _class_accuracy(seeds: Sequence[dict[str, Any]], arm: str) -> tuple[float, ...]:
    """Means over seeds; a class without images has no accuracy."""
    mean = np.mean([seed[arm]["single"]["classes"] for seed in seeds], axis=0)
    present = np.asarray(seeds[0][arm]["single"]["counts"]) > 0
    return tuple(np.where(present, mean, np.nan).tolist())


def _gallery(
    store: ArtifactStore, artifacts: TargetArtifacts, prompts: list[str], shards: Sequence[ArtifactRef]
) -> Iterator[GalleryImage]:
    """The first seed's training set, and some images that were tried and not taken."""
    lines = pq.read_table(store.file(artifacts.datasets[0], PROVENANCE)).to_pylist()
    taken = [line for line in lines if line["outcome"] == CHOSEN]
    images = read_members(store.file(artifacts.datasets[0], TAR), [f"{line['row']:09d}" for line in taken])
    for line in taken:
        yield _image(line, images[f"{line['row']:09d}"], prompts)
    refused: dict[int, list[dict[str, Any]]] = {}
    for line in lines:
        if line["outcome"] not in (CHOSEN, SPARE):
            refused.setdefault(line["label"], []).append(line)
    others = [line for group in refused.values() for line in group[:REJECTED_PER_CLASS]]
    rows = [line["row"] for line in others if line["outcome"] != DEAD]
    fetched = _from_corpus(store, artifacts.candidates, rows, shards)
    for line in others:
        yield _image(line, fetched.get(line["row"], b""), prompts)


def _from_corpus(
    store: ArtifactStore, candidates: ArtifactRef, rows: list[int], shards: Sequence[ArtifactRef]
) -> dict[int, bytes]:
    table = pq.read_table(store.file(candidates, "images.parquet"), columns=["row", "shard", "file", "key"])
    wanted = table.filter(pc.is_in(table.column("row"), pa.array(rows, pa.int64()))).to_pylist()
    links = {line["row"]: line for line in wanted}
    return ShardImages(lambda number: open_images(store, shards[number]), links).read(rows)


def _image(line: dict[str, Any], data: bytes, prompts: list[str]) -> GalleryImage:
    fresh = line["fresh_cosine"]
    return GalleryImage(
        image=data,
        label=line["label"],
        row=line["row"],
        query=prompts[line["query"]],
        rank=line["rank"],
        cosine=line["cosine"],
        fresh_cosine=None if fresh is None or fresh != fresh else fresh,
        outcome=line["outcome"],
        url=line["url"],
        caption=line["caption"],
        detail=line.get("detail") or "",
    )


def _all_manifests(
    store: ArtifactStore, targets: Sequence[TargetArtifacts], index: ArtifactRef
) -> list[Manifest]:
    """Every artifact behind the report, parents first, each once."""
    ends = [index, *(ref for one in targets for ref in (*one.models, *one.scores))]
    return list({manifest.ref: manifest for end in ends for manifest in store.lineage(end)}.values())


def _timings(manifests: Sequence[Manifest]) -> Iterator[Timing]:
    stages: dict[str, list[float]] = {}
    for manifest in manifests:
        stages.setdefault(manifest.recipe.stage, []).append(manifest.circumstances.seconds)
    for stage, seconds in stages.items():
        yield Timing(stage, len(seconds), sum(seconds))


def lineage_node(manifest: Manifest) -> LineageNode:
    ref, stage = str(manifest.ref), manifest.recipe.stage
    parents = tuple(str(parent) for parent in manifest.recipe.all_parents())
    return LineageNode(ref, stage, manifest.key, manifest.digest, extent(manifest), parents)


def _notes(report: TargetReport) -> Iterator[str]:
    for name, count in zip(report.classes, report.labels_after, strict=True):
        if count < FEW_IMAGES and not report.warnings:  # which say the same, and why
            yield f"{report.name}: class {name!r} has only {count} training images; the corpus may lack it"
    if report.scores and report.scores[METHOD].mean <= report.scores["zero_shot"].mean:
        yield f"{report.name}: finetuning did not help; use the zero-shot model"
    for seed, verdict in zip(report.seeds, report.verdicts, strict=False):
        if not verdict.better:
            yield f"{report.name}, seed {seed}: {' '.join(verdict.reasons[:2])}"


def _json_file(store: ArtifactStore, ref: ArtifactRef, name: str) -> Any:
    return json.loads(store.file(ref, name).read_text())
