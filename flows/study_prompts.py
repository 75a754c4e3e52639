"""What prompts alone are worth for a target that has evaluation images; needs no index."""

from __future__ import annotations

from dataclasses import dataclass

from prefect import flow

from tasks.executors.session import dask_runner
from flows.summary import prompts_shown
from mudg_core.errors import InputError
from mudg_core.evaluate.images import Source
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef
from mudg_core.target.descriptors import speaks_of
from mudg_core.target.methods import said_by_class, wording
from mudg_core.target.spec import Target
from tasks.run import Run, StageRecord
from tasks.executors.prefect_artifacts import show
from tasks.target import augment, collect_evaluation
from tasks.target import study_prompts as study


@dataclass(frozen=True)
class PromptsBuild:
    study: ArtifactRef
    records: list[StageRecord]


@flow(
    name="study-prompts",
    flow_run_name="study-prompts {target.name}",
    description="Zero-shot accuracy of the student by the way a target's classes are said.",
    task_runner=dask_runner(),
    persist_result=False,
)
def study_prompts(settings: Settings, target: Target) -> PromptsBuild:
    """target → queries, evaluation images → accuracies"""
    check_evaluation(target)
    settings = settings.replace(target.overrides(settings), where=f"settings of target {target.name}")
    own = {"augment": {"method": "adaptive"}, "evaluate": {"source": target.evaluation}}
    run = Run(settings.replace(own), part=target.name)
    words = wording(run.settings.augment, target)
    images = collect_evaluation(run, **Source.of(target, settings.evaluate).asked())
    said = _by_class(settings, target)
    queries = augment(run, **words)
    found = study(run, queries=queries, evaluation=images, pool=words["pool"], by_class=said)
    built = PromptsBuild(found, run.records)
    show(lambda: prompts_shown(run.store, settings, target.name, built))
    return built


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
    if own.descriptors and speaks_of(own.descriptors, target.classes):
        found["per-class"] = said_by_class(own, target, "per-class")
    if own.prompts:
        found["cupl"] = said_by_class(own, target, "cupl")
    return found
