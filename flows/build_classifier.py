"""Class names in, a finetuned classifier out: the lower half of the diagram in docs/architecture.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mudg_core.dataset.takedowns import mark_new_takedowns
from mudg_core.evaluate.images import Source
from mudg_core.index.model_names import check_named_model
from mudg_core.index.version import IndexVersion, current_version
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactRef
from mudg_core.target.prompts import wording
from mudg_core.target.spec import Target
from tasks.checks import check_classes, find_leaks, fingerprint_evaluation
from tasks.dataset import label, retrieve, select, select_queries
from tasks.export_classifier import export_classifier
from tasks.fetch import fetch
from tasks.flow import flow
from tasks.gate import gate, hold_out
from tasks.index import measure_recall
from tasks.map import place_images
from tasks.policy import Pending
from tasks.report import write_report
from tasks.run import Run, StageRecord
from tasks.takedowns import exclusion, takedowns_in_index, takedowns_in_training_set
from tasks.target import augment, collect_evaluation
from tasks.train import evaluate, score_zero_shot, train

# Plain retrieval: the class's own prompt and its nearest images. Filter, loss and all else are the method's.
NEAREST_NEIGHBOURS: Json = {
    "augment": {"method": "none"},
    "dataset": {"label": "cosine", "ranks": "retrieved", "select": "nearest"},
}


# Of a report's settings: what changes no figure, and the baseline, which its figures show.
NOT_REPORTED: Json = {"storage": True, "gc": True, "compute": True, "evaluate": {"baseline"}}


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
    baseline_records: list[StageRecord] = field(default_factory=list)  # those of `records` for the baseline

    @property
    def verdicts(self) -> list[ArtifactRef]:
        """Whether each seed's model seems better than zero-shot; empty without `gate.enabled`."""
        return self.mudg.verdicts


@flow(
    name="build-classifier",
    description="Finds images of a target's classes in the index and finetunes a CLIP student on them.",
    run_name=lambda settings, target: f"build-classifier {target.name}",
)
def build_classifier(settings: Settings, target: Target) -> ClassifierBuild:
    """target → queries → candidates → labels → picks → dataset → model → verdict, scores → report"""
    settings = settings.replace(target.overrides(settings), where=f"settings of target {target.name}")
    settings = settings.replace({"evaluate": {"source": target.evaluation}})
    run = Run(settings, part=target.name)
    with mark_new_takedowns(run.store):
        return _build(run, target)


def _build(run: Run, target: Target) -> ClassifierBuild:
    settings = run.settings
    version = current_version(run.store)
    check_named_model(run.store, version, settings.encode.model)
    evaluation = collect(run, target) if target.evaluation else None
    started = start(run, target, version, evaluation)
    held_out = start_holding_out(run, target, version, started.data) if settings.gate.enabled else None
    other = f"{target.name}, nearest neighbours"
    baseline = Run(settings.replace(NEAREST_NEIGHBOURS), part=other)
    compared = evaluation and settings.evaluate.baseline != "none"
    plain = start(baseline, target, version, evaluation) if compared else None
    untrained = start_untrained(run, started.data.queries, evaluation) if evaluation else None
    mudg = started.finish()
    judged = start_judging(run, mudg, held_out.results()) if held_out else None
    scores: list[ArtifactRef] = []
    if evaluation and untrained:
        scores = compare(run, evaluation, untrained.results()[0], mudg, plain.finish() if plain else None)
    run.records.extend(baseline.records)
    mudg = replace(mudg, verdicts=judged.results() if judged else [])
    warnings = warnings_of(run, version, mudg.data)
    classifier = export(run, target, version, mudg, scores, warnings)
    page = report(run, f"mudg: {target.name}", version, [(target, mudg, scores, warnings)])
    return ClassifierBuild(target, mudg, scores, warnings, classifier, page, run.records, baseline.records)


def collect(run: Run, target: Target) -> ArtifactRef:
    """The images that a target is evaluated on."""
    source = Source.of(target, run.settings.evaluate)
    return collect_evaluation(
        run, classes=source.classes, synonyms=source.synonym_lists(), fingerprint=source.fingerprint()
    )


def augment_target(run: Run, target: Target) -> ArtifactRef:
    """The queries of a target."""
    words = wording(run.settings.augment, target)
    return augment(
        run,
        classes=words.classes,
        template=words.template,
        synonyms=words.synonyms,
        pool=words.pool,
        pool_digest=words.pool_digest,
        by_class=words.by_class,
    )


def start_untrained(run: Run, queries: ArtifactRef, evaluation: ArtifactRef) -> Pending:
    """Scores of the student before finetuning."""
    return score_zero_shot.start(run, [score_zero_shot.job(queries=queries, evaluation=evaluation)])


def start(run: Run, target: Target, version: IndexVersion, evaluation: ArtifactRef | None) -> Started:
    """Data for a target, and training on it under way; the next arm's data can be built meanwhile."""
    data = build_dataset(run, target, version, evaluation)
    jobs = [
        train.job(
            dataset=ref,
            queries=data.queries,
            seed=seed,
            without=exclusion(takedowns_in_training_set(run, ref)),
        )
        for ref, seed in zip(data.by_seed, target.seeds, strict=True)
    ]
    return Started(data, train.start(run, jobs))


def build_dataset(run: Run, target: Target, version: IndexVersion, evaluation: ArtifactRef | None) -> Dataset:
    """Queries to training sets; the seeds of a target run side by side. Candidates that are evaluation images
    are left out (`dataset.exclude_leaks`): learning them by heart would look like a good model."""
    embeddings, shards = list(version.embeddings), list(version.shards)
    queries = augment_target(run, target)
    held = exclusion(takedowns_in_index(run, version))
    found = retrieve(run, queries=queries, index=version.index, embeddings=embeddings, without=held)
    prints = fingerprint_evaluation(run, evaluation=evaluation) if evaluation else None
    leaked = find_leaks(run, found=found, embeddings=embeddings, prints=prints) if prints else None
    labels = label_candidates(run, len(target.classes), found, queries, embeddings, leaked)
    prompts = select_queries(run.settings, queries)
    picks = select.map(
        run,
        [
            select.job(labels=labels, embeddings=embeddings, seed=seed, queries=prompts)
            for seed in target.seeds
        ],
    )
    by_seed = fetch.map(
        run, [fetch.job(picks=ref, found=found, queries=queries, shards=shards) for ref in picks]
    )
    return Dataset(queries, found, leaked, labels, by_seed, evaluation)


def label_candidates(
    run: Run,
    classes: int,
    found: ArtifactRef,
    queries: ArtifactRef,
    embeddings: Sequence[ArtifactRef],
    leaked: ArtifactRef | None,
) -> ArtifactRef:
    """`label` with those inputs alone that these settings ask for: evaluation images, to leave them out, and
    all for exact ranks."""
    exact = run.settings.dataset.ranks == "exact"
    return label(
        run,
        found=found,
        classes=classes,
        leaked=leaked if run.settings.dataset.exclude_leaks else None,
        queries=queries if exact else None,
        embeddings=list(embeddings) if exact else None,
    )


def start_holding_out(run: Run, target: Target, version: IndexVersion, data: Dataset) -> Pending:
    """Images to judge each seed's model by; they are there before it is."""
    jobs = [
        hold_out.job(
            dataset=ref,
            found=data.found,
            queries=data.queries,
            shards=list(version.shards),
            embeddings=list(version.embeddings),
            seed=seed,
        )
        for ref, seed in zip(data.by_seed, target.seeds, strict=True)
    ]
    return hold_out.start(run, jobs)


def start_judging(run: Run, arm: Arm, held_out: Sequence[ArtifactRef]) -> Pending:
    """Whether each model is better than zero-shot, as far as can be told without labels."""
    jobs = [
        gate.job(model=model, held_out=held, queries=arm.data.queries)
        for model, held in zip(arm.models, held_out, strict=True)
    ]
    return gate.start(run, jobs)


def compare(
    run: Run, evaluation: ArtifactRef, untrained: ArtifactRef, mudg: Arm, plain: Arm | None
) -> list[ArtifactRef]:
    """Scores of the student before finetuning, after plain retrieval if there is such an arm, and after the
    method; one a seed."""
    arms = {"nearest_neighbours": plain, "mudg": mudg} if plain else {"mudg": mudg}
    jobs = [
        evaluate.job(
            models=list(models),
            names=list(arms),
            queries=mudg.data.queries,
            evaluation=evaluation,
            zero_shot=untrained,
            curve="mudg",
        )
        for models in zip(*(arm.models for arm in arms.values()), strict=True)
    ]
    return evaluate.map(run, jobs)


def export(
    run: Run,
    target: Target,
    version: IndexVersion,
    mudg: Arm,
    scores: list[ArtifactRef],
    warnings: ArtifactRef,
) -> ArtifactRef:
    """What the user gets: the first seed's model, as far finetuned as the gate's verdict says."""
    return export_classifier(
        run,
        target=target.name,
        description=target.description,
        model=mudg.models[0],
        queries=mudg.data.queries,
        dataset=mudg.data.by_seed[0],
        index=version.index,
        scores=scores or None,
        verdict=mudg.verdicts[0] if mudg.verdicts else None,
        warnings=warnings,
    )


Reported = tuple[Target, Arm, list[ArtifactRef], ArtifactRef]  # with its scores and its warnings


def report(run: Run, title: str, version: IndexVersion, made: Sequence[Reported]) -> ArtifactRef:
    """One page for one target or several; it shows the first seed's images."""
    data = [arm.data for _, arm, _, _ in made]
    maps = place_images.map(
        run,
        [
            place_images.job(
                labels=one.labels,
                dataset=one.by_seed[0],
                queries=one.queries,
                embeddings=list(version.embeddings),
            )
            for one in data
        ],
    )
    return write_report(
        run,
        title=title,
        targets=[target.model_dump(mode="json") for target, _, _, _ in made],
        settings=run.settings.model_dump(mode="json", exclude=NOT_REPORTED),
        queries=[one.queries for one in data],
        found=[one.found for one in data],
        labels=[one.labels for one in data],
        datasets=[ref for one in data for ref in one.by_seed],
        models=[ref for _, arm, _, _ in made for ref in arm.models],
        scores=[ref for _, _, scores, _ in made for ref in scores],
        shards=list(version.shards),
        centroids=version.centroids,
        index=version.index,
        recall=measure_recall(run, index=version.index),
        maps=maps,
        warnings=[warnings for _, _, _, warnings in made],
        verdicts=[ref for _, arm, _, _ in made for ref in arm.verdicts],
    )


def warnings_of(run: Run, version: IndexVersion, data: Dataset) -> ArtifactRef:
    """What the user of a target should be warned of."""
    return check_classes(
        run,
        queries=data.queries,
        index=version.index,
        embeddings=list(version.embeddings),
        found=data.found,
        labels=data.labels,
        datasets=data.by_seed,
        leaked=data.leaked,
        evaluation=data.evaluation if data.leaked else None,
    )
