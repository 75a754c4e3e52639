"""What prompts alone are worth for a target that has evaluation images; needs no index."""

from __future__ import annotations

from dataclasses import dataclass

from flows.build_classifier import augment_target, collect
from mudg_core.errors import InputError
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef
from mudg_core.target.descriptor_pool import covers_classes
from mudg_core.target.prompts import phrases_by_class, wording
from mudg_core.target.spec import Target
from tasks.flow import flow
from tasks.run import Run, StageRecord
from tasks.target import study_prompts as study_stage


@dataclass(frozen=True)
class PromptsBuild:
    target: Target
    study: ArtifactRef
    records: list[StageRecord]


@flow(
    name="study-prompts",
    description="Zero-shot accuracy of the student by the prompts of a target's classes.",
    run_name=lambda settings, target: f"study-prompts {target.name}",
)
def study_prompts(settings: Settings, target: Target) -> PromptsBuild:
    """target → queries, evaluation images → accuracies"""
    check_evaluation(target)
    settings = settings.replace(target.overrides(settings), where=f"settings of target {target.name}")
    own = {"augment": {"method": "adaptive"}, "evaluate": {"source": target.evaluation}}
    run = Run(settings.replace(own), part=target.name)
    images = collect(run, target)
    queries = augment_target(run, target)
    pool, by_class = wording(run.settings.augment, target).pool, _by_class(settings, target)
    study = study_stage(run, queries=queries, evaluation=images, pool=pool, by_class=by_class)
    return PromptsBuild(target, study, run.records)


def check_evaluation(target: Target) -> None:
    if not target.evaluation:
        raise InputError(
            what="the target has no evaluation images, so nothing can be compared",
            where=target.name,
            fix="add `evaluation: FOLDER` (DOMAIN/CLASS/*.jpg) to its spec",
        )


def _by_class(settings: Settings, target: Target) -> dict[str, list[list[str]]]:
    """What the files at hand say about each class; a file that is a pool and no more has nothing to add."""
    own, found = settings.augment, {}
    if own.descriptors and covers_classes(own.descriptors, target.classes):
        found["per-class"] = phrases_by_class(own, target, "per-class")
    if own.prompts:
        found["cupl"] = phrases_by_class(own, target, "cupl")
    return found
