"""Class names in, a finetuned classifier out: the lower half of the diagram in the README."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prefect import flow

from tasks.executors.session import dask_runner
from flows.summary import classifier_shown
from mudg_core.dataset.forgotten import marked_if_forgotten
from mudg_core.encode.weights import weights_digest
from mudg_core.evaluate.images import Source
from mudg_core.index.opened import check_model
from mudg_core.index.version import IndexVersion, current_version
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactRef
from mudg_core.target.methods import wording
from mudg_core.target.spec import Target
from tasks.checks import check_classes, find_leaks, fingerprint_evaluation
from tasks.dataset import label, label_needs, retrieve, select, select_needs
from tasks.fetch import fetch
from tasks.forget import left_out, still_held, to_forget
from tasks.gate import gate, hold_out
from tasks.export_classifier import hand_over
from tasks.index import measure_recall
from tasks.map import place_images
from tasks.pending import Pending
from tasks.report import write_report
from tasks.run import Run, StageRecord
from tasks.executors.prefect_artifacts import show
from tasks.target import augment, collect_evaluation
from tasks.train import evaluate, score_zero_shot, train

# Plain retrieval: the class's own prompt and its nearest images. Filter, loss and all else are the method's.
NEAREST_NEIGHBOURS: Json = {
    "augment": {"method": "none"},
    "dataset": {"label": "cosine", "ranks": "retrieved", "select": "nearest"},
}


@dataclass(frozen=True)
class Dataset:
    """What was found for a target; `by_seed` has a training set for each of its seeds."""

    queries: ArtifactRef
    found: ArtifactRef
    leaked: ArtifactRef | None  # candidates that are evaluation images, where there are any of these
    labels: ArtifactRef
    by_seed: list[ArtifactRef]
    evaluation: ArtifactRef | None = None


@dataclass(frozen=True)
class Arm:
    """One way to a model (the method, or the baseline); a model for each seed, and a verdict on each if it
    was asked for."""

    data: Dataset
    models: list[ArtifactRef]
    verdicts: list[ArtifactRef] = field(default_factory=list)


@dataclass(frozen=True)
class Started:
    """An arm whose models are still being trained."""

    data: Dataset
    training: Pending

    def finish(self) -> Arm:
        return Arm(self.data, self.training.results())


@dataclass(frozen=True)
class ClassifierBuild:
    """Everything made for a target, and what this run did for it. No scores without evaluation images."""

    target: Target
    mudg: Arm
    scores: list[ArtifactRef]
    warnings: ArtifactRef
    classifier: ArtifactRef
    report: ArtifactRef
    records: list[StageRecord]

    @property
    def verdicts(self) -> list[ArtifactRef]:
        """Whether each seed's model seems better than zero-shot; empty without `gate.enabled`."""
        return self.mudg.verdicts


@flow(
    name="build-classifier",
    flow_run_name="build-classifier {target.name}",
    description="Finds images of a target's classes in the index and finetunes a CLIP student on them.",
    task_runner=dask_runner(),
    persist_result=False,
)
def build_classifier(settings: Settings, target: Target) -> ClassifierBuild:
    """target → queries → candidates → labels → picks → dataset → model → verdict, scores → report"""
    settings = settings.replace(target.overrides(settings), where=f"settings of target {target.name}")
    settings = settings.replace({"evaluate": {"source": target.evaluation}})
    run = Run(settings, part=target.name)
    with marked_if_forgotten(run.store):
        built = _build(run, target)
    show(lambda: classifier_shown(run.store, settings, built))
    return built


def _build(run: Run, target: Target) -> ClassifierBuild:
    settings = run.settings
    version = current_version(run.store)
    check_model(run.store, version, weights_digest(settings.encode.model))
    evaluation = collect(run, target) if target.evaluation else None
    started = start(run, target, version, evaluation)
    held_out = start_holding_out(run, target, version, started.data) if settings.gate.enabled else None
    other = f"{target.name}, nearest neighbours"
    baseline = Run(settings.replace(NEAREST_NEIGHBOURS), run.records, other)
    plain = start(baseline, target, version, evaluation) if evaluation else None
    tested = {"queries": started.data.queries, "evaluation": evaluation}
    untrained = score_zero_shot.start(run, [tested]) if evaluation else None
    mudg = started.finish()
    judged = start_judging(run, mudg, held_out.results()) if held_out else None
    scores = compare(run, tested, untrained, mudg, plain.finish()) if plain and untrained else []
    mudg = replace(mudg, verdicts=judged.results() if judged else [])
    warnings = check_classes(run, **checked(version, mudg.data))
    classifier = give(run, target, version, mudg, scores, warnings)
    page = report(run, f"mudg: {target.name}", version, [(target, mudg, scores, warnings)])
    return ClassifierBuild(target, mudg, scores, warnings, classifier, page, run.records)


def collect(run: Run, target: Target) -> ArtifactRef:
    """The images that a target is evaluated on."""
    source = Source.of(target, run.settings.evaluate)
    return collect_evaluation(run, **source.asked())


def start(run: Run, target: Target, version: IndexVersion, evaluation: ArtifactRef | None) -> Started:
    """Data for a target, and training on it under way; the next arm's data can be built meanwhile."""
    data = build_dataset(run, target, version, evaluation)
    jobs = zip(data.by_seed, target.seeds, strict=True)
    asked: list[dict[str, Any]] = [{"dataset": d, "queries": data.queries, "seed": seed} for d, seed in jobs]
    training = train.start(run, [job | left_out(to_forget(run, job["dataset"])) for job in asked])
    return Started(data, training)


def build_dataset(run: Run, target: Target, version: IndexVersion, evaluation: ArtifactRef | None) -> Dataset:
    """Queries to training sets; the seeds of a target run side by side. Candidates that are evaluation images
    are left out (`dataset.exclude_leaks`): learning them by heart would look like a good model."""
    embeddings = version.embeddings
    queries = augment(run, **wording(run.settings.augment, target))
    held = left_out(still_held(run, version))
    found = retrieve(run, queries=queries, index=version.index, embeddings=embeddings, **held)
    known = {"found": found, "embeddings": embeddings}
    prints = fingerprint_evaluation(run, evaluation=evaluation) if evaluation else None
    leaked = find_leaks(run, **known, prints=prints) if prints else None
    needed = label_needs(run.settings, queries, embeddings, leaked)
    labels = label(run, found=found, classes=len(target.classes), **needed)
    asked = {"labels": labels, "embeddings": embeddings, **select_needs(run.settings, queries)}
    picks = select.map(run, [{**asked, "seed": seed} for seed in target.seeds])
    sources = {"found": found, "queries": queries, "shards": version.shards}
    by_seed = fetch.map(run, [{"picks": pick, **sources} for pick in picks])
    return Dataset(queries, found, leaked, labels, by_seed, evaluation)


def start_holding_out(run: Run, target: Target, version: IndexVersion, data: Dataset) -> Pending:
    """Images to judge each seed's model by; they are there before it is."""
    known: dict[str, Any] = {"found": data.found, "queries": data.queries}
    known |= {"shards": version.shards, "embeddings": version.embeddings}
    jobs = zip(data.by_seed, target.seeds, strict=True)
    return hold_out.start(run, [{"dataset": ref, "seed": seed, **known} for ref, seed in jobs])


def start_judging(run: Run, arm: Arm, held_out: Sequence[ArtifactRef]) -> Pending:
    """Whether each model is better than zero-shot, as far as can be told without labels."""
    jobs = zip(arm.models, held_out, strict=True)
    return gate.start(
        run, [{"model": model, "held_out": held, "queries": arm.data.queries} for model, held in jobs]
    )


def compare(run: Run, tested: dict[str, Any], untrained: Pending, mudg: Arm, plain: Arm) -> list[ArtifactRef]:
    """Scores of the student before finetuning, after plain retrieval, and after the method; one a seed."""
    common = {"names": ["nearest_neighbours", "mudg"], "curve": "mudg", **tested}
    common["zero_shot"] = untrained.results()[0]
    pairs = zip(plain.models, mudg.models, strict=True)
    return evaluate.map(run, [{"models": list(pair), **common} for pair in pairs])


def give(
    run: Run,
    target: Target,
    version: IndexVersion,
    mudg: Arm,
    scores: list[ArtifactRef],
    warnings: ArtifactRef,
) -> ArtifactRef:
    """What the user gets: the first seed's model, as far finetuned as the gate's verdict says."""
    known = {"scores": scores} if scores else {}
    judged = {"verdict": mudg.verdicts[0]} if mudg.verdicts else {}
    return hand_over(
        run,
        target=target.name,
        description=target.description,
        model=mudg.models[0],
        queries=mudg.data.queries,
        dataset=mudg.data.by_seed[0],
        index=version.index,
        warnings=warnings,
        **known,
        **judged,
    )


Reported = tuple[Target, Arm, list[ArtifactRef], ArtifactRef]  # with its scores and its warnings


def report(run: Run, title: str, version: IndexVersion, made: Sequence[Reported]) -> ArtifactRef:
    """One page for one target or several; it shows the first seed's images."""
    data = [arm.data for _, arm, _, _ in made]
    shown = [{"labels": d.labels, "dataset": d.by_seed[0], "queries": d.queries} for d in data]
    maps = place_images.map(run, [images | {"embeddings": version.embeddings} for images in shown])
    return write_report(
        run,
        title=title,
        targets=[target.model_dump(mode="json") for target, _, _, _ in made],
        settings=run.settings.model_dump(mode="json", exclude={"storage", "gc", "compute"}),
        queries=[found.queries for found in data],
        found=[found.found for found in data],
        labels=[found.labels for found in data],
        datasets=[ref for found in data for ref in found.by_seed],
        models=[ref for _, arm, _, _ in made for ref in arm.models],
        scores=[ref for _, _, scores, _ in made for ref in scores],
        shards=version.shards,
        centroids=version.centroids,
        index=version.index,
        recall=measure_recall(run, index=version.index),
        maps=maps,
        warnings=[warnings for _, _, _, warnings in made],
        verdicts=[ref for _, arm, _, _ in made for ref in arm.verdicts],
    )


def checked(version: IndexVersion, data: Dataset) -> dict[str, Any]:
    """What a target's warnings are told from."""
    known = {"queries": data.queries, "found": data.found, "labels": data.labels, "datasets": data.by_seed}
    tested = {"leaked": data.leaked, "evaluation": data.evaluation} if data.leaked else {}
    return {**known, **tested, "index": version.index, "embeddings": version.embeddings}
