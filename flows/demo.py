"""The whole pipeline on the built-in demo world: what a stranger runs first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prefect import flow

from flows.build_classifier import ClassifierBuild, build_classifier, report
from flows.build_index import build_index
from tasks.executors.session import call, dask_runner
from flows.summary import demo_shown
from mudg_core.corpus.demo.targets import TARGETS, DemoTarget
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef
from mudg_core.target.spec import Target
from tasks.run import Run, StageRecord
from tasks.executors.prefect_artifacts import show

DEMO_SETTINGS = Path(__file__).with_name("demo.yaml")
FULL_SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class DemoBuild:
    builds: list[ClassifierBuild]
    report: ArtifactRef
    records: list[StageRecord]


@flow(
    name="demo",
    flow_run_name=lambda: f"demo {datetime.now(UTC):%Y-%m-%d %H:%M}",
    description="Builds the demo index, and a classifier for one demo target or for all of them.",
    task_runner=dask_runner(),
    persist_result=False,
)
def demo(settings: Settings, full: bool) -> DemoBuild:
    """index → classifiers → report"""
    index = call(build_index, settings)
    builds = [call(build_classifier, settings, target) for target in demo_targets(full)]
    records = [*index.records, *(record for build in builds for record in build.records)]
    run = Run(settings, records)
    if full:
        made = [(build.target, build.mudg, build.scores, build.warnings) for build in builds]
        page = report(run, "mudg demo, all targets", index.version, made)
    else:
        page = builds[0].report
    built = DemoBuild(builds, page, records)
    show(lambda: demo_shown(run.store, settings, built))
    return built


def demo_targets(full: bool) -> list[Target]:
    """One target and one seed, or all of them."""
    chosen = TARGETS if full else TARGETS[:1]
    return [as_target(target, FULL_SEEDS if full else FULL_SEEDS[:1]) for target in chosen]


def as_target(demo_target: DemoTarget, seeds: Sequence[int]) -> Target:
    return Target(
        name=demo_target.name,
        description=demo_target.description,
        classes=demo_target.classes,
        template=demo_target.template,
        evaluation=f"demo:{demo_target.name}",
        seeds=tuple(seeds),
    )
