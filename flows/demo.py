"""The whole pipeline on the built-in demo world: what a stranger runs first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.build_classifier import ClassifierBuild, build_classifier, report
from flows.build_index import IndexBuild, build_index
from mudg_core.corpus.demo.targets import TARGETS, DemoTarget
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef
from mudg_core.target.spec import Target
from tasks.flow import dated, flow
from tasks.run import Run, StageRecord

DEMO_SETTINGS = Path(__file__).with_name("demo.yaml")
FULL_SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class DemoBuild:
    index: IndexBuild
    builds: list[ClassifierBuild]
    report: ArtifactRef
    records: list[StageRecord]


@flow(
    name="demo",
    description="Builds the demo index, and a classifier for one demo target or for all of them.",
    run_name=lambda settings, full: dated("demo"),
)
def demo(settings: Settings, full: bool) -> DemoBuild:
    """index → classifiers → report"""
    index = build_index(settings)
    builds = [build_classifier(settings, target) for target in demo_targets(full)]
    records = [*index.records, *(record for build in builds for record in build.records)]
    run = Run(settings, records)
    if full:
        made = [(build.target, build.mudg, build.scores, build.warnings) for build in builds]
        page = report(run, "mudg demo, all targets", index.version, made)
    else:
        page = builds[0].report
    return DemoBuild(index, builds, page, records)


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
