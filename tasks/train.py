"""A training set to a model, and a model to scores.

What needs torch is imported where it is called: flows import this module also when nothing is to be computed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mudg_core.dataset.training_set import read_whole_images
from mudg_core.evaluate.images import EvaluationSet
from mudg_core.evaluate.measures import ByDomain, column_name, write_answers
from mudg_core.settings import Json, TrainSettings
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.queries import Queries, read_queries
from tasks.policy import Work, stage

if TYPE_CHECKING:
    from mudg_core.evaluate.classifier import Classifier, Curve
    from mudg_core.index.vectors import Float32

SCORES = "scores.json"

# All but the model, whose weights count, and how often checkpoints are kept, which changes nothing. Sizes of
# chunks change how sums are rounded.
TRAIN = tuple(
    f"train.{name}"
    for name in TrainSettings.model_fields
    if name not in ("model", "checkpoint_every", "checkpoint_seconds")
)


@stage("model", algorithm=4, settings=TRAIN, weights=("train.model",), gpu=True)
def train(
    work: Work,
    *,
    dataset: ArtifactRef,
    queries: ArtifactRef,
    seed: int,
    without: list[int] | None = None,
) -> Facts:
    """The finetuned student, as files that open_clip loads. `without`: rows that were taken down."""
    from mudg_core.train.export import export
    from mudg_core.train.finetune import TrainingLog, finetune

    settings, asked = work.settings.train, read_queries(work.store.folder(queries))
    clip = work.clip(settings.model)
    images, labels = read_whole_images(work.store.folder(dataset), clip, without or ())
    folder, steps = work.scratch / "tensorboard", settings.iterations
    work.count(steps, "steps")
    with (
        TrainingLog(folder, steps, work.host.logger(), progress=work.show) as watch,
        work.host.stopping() as stop,
    ):
        tuned = finetune(
            clip,
            images,
            labels,
            asked.prompts(),
            settings,
            seed,
            progress=watch,
            checkpoints=work.checkpoints,
            interrupted=stop,
        )
    export(tuned.student, asked, work.scratch, settings.temperature)
    (work.scratch / "losses.json").write_text(json.dumps(tuned.losses))
    facts = {"images": len(images), "initial_share": tuned.initial_share, "last_loss": tuned.losses[-1]}
    return Facts(facts, volatile=frozenset({watch.file.relative_to(work.scratch).as_posix()}))


EVALUATE = ("evaluate.batch_size", "train.temperature")


@stage("evaluation-features", settings=("evaluate.batch_size",), weights=("train.model",), gpu=True)
def encode_evaluation(work: Work, *, evaluation: ArtifactRef) -> Facts:
    """What the student sees of evaluation images before finetuning: once for all that compare it."""
    from mudg_core.evaluate.classifier import image_features, write_features

    images = EvaluationSet.open(work.store.folder(evaluation))
    clip, size = work.clip(work.settings.train.model), work.settings.evaluate.batch_size
    features = image_features(clip, images, size)
    write_features(features, work.scratch)
    return Facts({"images": sum(map(len, features.values()))})


@stage("zero-shot", algorithm=3, settings=EVALUATE, weights=("train.model",), gpu=True)
def score_zero_shot(
    work: Work, *, queries: ArtifactRef, evaluation: ArtifactRef, features: ArtifactRef | None = None
) -> Facts:
    """All measures of the student before finetuning, which are the same for every seed. `features` are those
    of the evaluation images, where they are known."""
    from mudg_core.evaluate.classifier import read_features, zero_shot

    images = EvaluationSet.open(work.store.folder(evaluation))
    known = read_features(work.store.folder(features), images.labels) if features else None
    student = zero_shot(work.clip(work.settings.train.model), read_queries(work.store.folder(queries)))
    return _write_scores(work, _evaluated(work, {"zero_shot": student}, images, known))


@stage(
    "scores",
    algorithm=4,
    settings=(*EVALUATE, "evaluate.alpha_points", "evaluate.alpha_images"),
    weights=("train.model",),
    gpu=True,
)
def evaluate(
    work: Work,
    *,
    models: list[ArtifactRef],
    names: list[str],
    queries: ArtifactRef,
    evaluation: ArtifactRef,
    zero_shot: ArtifactRef | None = None,
    curve: str = "",
) -> Facts:
    """All measures of models, by `names`, beside those of `zero_shot`; and for the model that `curve` names
    accuracy along the way from the initial to its weights."""
    from mudg_core.evaluate.classifier import finetuned

    folders = {name: work.store.folder(ref) for name, ref in zip(names, models, strict=True)}
    images = EvaluationSet.open(work.store.folder(evaluation))
    body: Json = json.loads(work.store.file(zero_shot, SCORES).read_text()) if zero_shot else {}
    students = {name: finetuned(folder, work.settings.compute.device) for name, folder in folders.items()}
    body |= _evaluated(work, students, images)
    if curve and work.settings.evaluate.alpha_points:
        asked = read_queries(work.store.folder(queries))
        body[curve]["alpha"] = asdict(_curve(work, folders[curve], asked, images))
    return _write_scores(work, body)


def _evaluated(
    work: Work,
    students: Mapping[str, Classifier],
    images: EvaluationSet,
    features: Mapping[str, Float32] | None = None,
) -> Json:
    """Measures of each student. The answers that they are of go to a file, so that another stage can compare
    image by image."""
    from mudg_core.evaluate.classifier import image_features

    body: Json = {}
    predicted: dict[str, ByDomain] = {}
    batch, temperature = work.settings.evaluate.batch_size, work.settings.train.temperature
    for name, student in students.items():
        known = features or image_features(student.clip, images, batch)
        answers = student.answers(known, images.labels, temperature)
        body[name] = {way: asdict(measured) for way, measured in student.measures(answers).items()}
        for way, by_domain in answers.items():
            predicted[column_name(name, way)] = {domain: own.predicted for domain, own in by_domain.items()}
    write_answers(work.scratch, images.labels, predicted)
    return body


def _curve(work: Work, folder: Path, queries: Queries, images: EvaluationSet) -> Curve:
    from mudg_core.evaluate.classifier import alpha_curve
    from mudg_core.train.export import open_student
    from mudg_core.train.student import initial_student

    settings, tuned = work.settings.evaluate, open_student(folder, work.settings.compute.device)
    initial = initial_student(work.clip(work.settings.train.model), tuned.prompt)
    return alpha_curve(initial, tuned, queries, images, settings.alpha_points, settings.alpha_images)


def _write_scores(work: Work, body: Json) -> Facts:
    (work.scratch / SCORES).write_text(json.dumps(body, indent=1, allow_nan=False))
    return Facts({name: ways["single"]["mean"] for name, ways in body.items()})
