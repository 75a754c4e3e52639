"""Class names in, a finetuned classifier out: the lower half of the diagram in the README."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefect import flow

from flows.session import dask_runner
from mudg_core.evaluate.images import Source
from mudg_core.index.version import IndexVersion, current_version
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef
from mudg_core.target.descriptors import read_pool
from mudg_core.target.spec import Target
from tasks.dataset import fetch, label, retrieve, select
from tasks.report import write_report
from tasks.run import Run, StageRecord
from tasks.target import augment, collect_evaluation
from tasks.train import evaluate, train

# Plain retrieval: the class's own prompt, its nearest images, plain cross entropy. All else is the same.
NEAREST_NEIGHBOURS = {
    "augment": {"method": "none"},
    "dataset": {"label": "cosine", "select": "nearest", "min_cosine": -1.0},
    "train": {"diversity": 0.0},
}


@dataclass(frozen=True)
class Arm:
    """One way to a model (the method, or the baseline); lists have an entry for each seed of the target."""

    queries: ArtifactRef
    found: ArtifactRef
    labels: ArtifactRef
    datasets: list[ArtifactRef]
    models: list[ArtifactRef]


@dataclass(frozen=True)
class ClassifierBuild:
    """Everything made for a target, and what this run did for it. No scores without evaluation images."""

    target: Target
    mudg: Arm
    scores: list[ArtifactRef]
    report: ArtifactRef
    records: list[StageRecord]


@flow(
    name="build-classifier",
    flow_run_name="build-classifier {target.name}",
    description="Finds images of a target's classes in the index and finetunes a CLIP student on them.",
    task_runner=dask_runner(),
    persist_result=False,
)
def build_classifier(settings: Settings, target: Target) -> ClassifierBuild:
    """target → queries → candidates → labels → picks → dataset → model → scores → report"""
    settings = settings.replace(target.settings, where=f"settings of target {target.name}")
    run = Run(settings.replace({"evaluate": {"source": target.evaluation}}))
    version = current_version(run.store)
    mudg = build_arm(run, target, version)
    scores = compare(run, target, version, mudg) if target.evaluation else []
    page = report(run, f"mudg: {target.name}", version, [(target, mudg, scores)])
    return ClassifierBuild(target, mudg, scores, page, run.records)


def build_arm(run: Run, target: Target, version: IndexVersion) -> Arm:
    """Queries to models; the seeds of a target run side by side."""
    seeds, embeddings, file = target.seeds, version.embeddings, run.settings.augment.descriptors
    pool = list(read_pool(file)) if file else []
    queries = augment(run, classes=list(target.classes), template=target.template, pool=pool)
    found = retrieve(run, queries=queries, index=version.index, embeddings=embeddings)
    labels = label(run, found=found)
    picks = select.map(run, [{"labels": labels, "embeddings": embeddings, "seed": seed} for seed in seeds])
    sources = {"found": found, "queries": queries, "shards": version.shards}
    datasets = fetch.map(run, [{"picks": pick, **sources} for pick in picks])
    models = train.map(
        run,
        [{"dataset": d, "queries": queries, "seed": seed} for d, seed in zip(datasets, seeds, strict=True)],
    )
    return Arm(queries, found, labels, datasets, models)


def compare(run: Run, target: Target, version: IndexVersion, mudg: Arm) -> list[ArtifactRef]:
    """Scores of the student before finetuning, after plain retrieval, and after the method; one a seed."""
    baseline = Run(run.settings.replace(NEAREST_NEIGHBOURS), run.records)
    nearest = build_arm(baseline, target, version)
    classes = list(target.classes)
    source = Source(target.evaluation or "", classes, run.settings.evaluate.demo_images_per_class)
    evaluation = collect_evaluation(run, classes=classes, fingerprint=source.fingerprint())
    common = {"names": ["nearest_neighbours", "mudg"], "queries": mudg.queries, "evaluation": evaluation}
    return evaluate.map(
        run, [{"models": list(pair), **common} for pair in zip(nearest.models, mudg.models, strict=True)]
    )


def report(
    run: Run, title: str, version: IndexVersion, made: Sequence[tuple[Target, Arm, list[ArtifactRef]]]
) -> ArtifactRef:
    """One page for one target or several."""
    arms = [arm for _, arm, _ in made]
    return write_report(
        run,
        title=title,
        targets=[target.model_dump(mode="json") for target, _, _ in made],
        settings=run.settings.model_dump(mode="json", exclude={"storage", "compute"}),
        queries=[arm.queries for arm in arms],
        found=[arm.found for arm in arms],
        labels=[arm.labels for arm in arms],
        datasets=[ref for arm in arms for ref in arm.datasets],
        models=[ref for arm in arms for ref in arm.models],
        scores=[ref for _, _, scores in made for ref in scores],
        shards=version.shards,
        centroids=version.centroids,
        index=version.index,
    )
