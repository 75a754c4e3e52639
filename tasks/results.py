"""What a run has to say at its end: figures as JSON, and a page where people will find it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from mudg_core.evaluate.measures import summarise
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.target.spec import Target
from tasks.report import REPORT
from tasks.run import StageRecord


class ScoredTarget(Protocol):
    """A target and its scores, one for each seed; none without evaluation images."""

    @property
    def target(self) -> Target: ...

    @property
    def scores(self) -> list[ArtifactRef]: ...


def accuracies(store: ArtifactStore, builds: Sequence[ScoredTarget]) -> dict[str, Any]:
    """Each arm's accuracy over all targets, domains and seeds.

    The mean is over targets; the deviation is over seeds, of the mean over targets.
    """
    scores = [[_scores(store, ref) for ref in build.scores] for build in builds if build.scores]
    if not scores:
        return {}
    arms = list(scores[0][0])
    overall = {arm: _over_targets([_single(target, arm) for target in scores]) for arm in arms}
    names = [build.target.name for build in builds if build.scores]
    by_target = {
        name: {arm: summarise(_single(target, arm)) for arm in arms}
        for name, target in zip(names, scores, strict=True)
    }
    return overall | {"targets": by_target}


def _single(seeds: list[Any], arm: str) -> list[dict[str, Any]]:
    return [seed[arm]["single"] for seed in seeds]


def _over_targets(scores: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """`scores[target][seed]`; a domain that several targets have counts once for each."""
    by_seed = []
    for seed in zip(*scores, strict=True):
        domains: dict[str, list[float]] = {}
        for target in seed:
            for domain, value in target["domains"].items():
                domains.setdefault(domain, []).append(value)
        means = {domain: sum(values) / len(values) for domain, values in domains.items()}
        by_seed.append({"mean": sum(target["mean"] for target in seed) / len(seed), "domains": means})
    return summarise(by_seed)


def counts(records: Sequence[StageRecord]) -> dict[str, Any]:
    """Wall time by stage in this run, and how many artifacts were found and made."""
    seconds: dict[str, float] = {}
    for record in records:
        seconds[record.stage] = round(seconds.get(record.stage, 0.0) + record.seconds, 2)
    return {
        "seconds": seconds,
        "cached": sum(record.cached for record in records),
        "computed": sum(record.computed for record in records),
    }


def publish(
    store: ArtifactStore, page: ArtifactRef, name: str, settings: Settings, file: str = REPORT
) -> Path:
    """A copy of the report at a path that a person can type; never half a page, whenever a run is killed."""
    folder = Path(settings.storage.cache_dir).with_name("reports")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.html"
    with tempfile.TemporaryDirectory(dir=folder, prefix=".") as unfinished:
        copy = Path(unfinished, path.name)
        shutil.copyfile(store.file(page, file), copy)
        copy.replace(path)
    return path


def _scores(store: ArtifactStore, ref: ArtifactRef) -> Any:
    return json.loads(store.file(ref, "scores.json").read_text())
