"""All that was found out, as one page to look at."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from mudg_core.report.gather import TargetArtifacts, gather
from mudg_core.report.page import render
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.spec import Target
from tasks.policy import Work, stage

REPORT = "report.html"
MAX_WARNINGS = 100  # of a target, in the manifest; all are in the artifact of its warnings


@stage("report", algorithm=4)
def write_report(
    work: Work,
    *,
    title: str,
    targets: list[dict[str, Any]],
    settings: dict[str, Any],
    queries: list[ArtifactRef],
    found: list[ArtifactRef],
    labels: list[ArtifactRef],
    datasets: list[ArtifactRef],
    models: list[ArtifactRef],
    scores: list[ArtifactRef],
    shards: list[ArtifactRef],
    centroids: ArtifactRef,
    index: ArtifactRef,
    recall: ArtifactRef,
    maps: list[ArtifactRef] | None = None,
    warnings: list[ArtifactRef] | None = None,
    verdicts: list[ArtifactRef] | None = None,
) -> Facts:
    """One page for one or more targets; lists with an entry a seed hold the targets one after the other.

    The page tells wall times and its own date, so it stays out of the digest; the figures in it do not.
    """
    made = []
    start = scored = 0
    for number, spec in enumerate(targets):
        target = Target.model_validate(spec)
        end = start + len(target.seeds)
        scores_end = scored + (len(target.seeds) if target.evaluation else 0)
        made.append(
            TargetArtifacts(
                target,
                queries[number],
                found[number],
                labels[number],
                datasets[start:end],
                models[start:end],
                scores[scored:scores_end],
                warnings=warnings[number] if warnings else None,
                map=maps[number] if maps else None,
                verdicts=verdicts[start:end] if verdicts else (),
            )
        )
        start, scored = end, scores_end
    created = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    data = gather(work.store, title, created, settings, made, shards, centroids, index, recall)
    (work.scratch / REPORT).write_text(render(data), encoding="utf-8")
    figures = {t.name: {arm: asdict(score) for arm, score in t.scores.items()} for t in data.targets}
    (work.scratch / "figures.json").write_text(json.dumps(figures, indent=1))
    told = {t.name: [asdict(warning) for warning in t.warnings[:MAX_WARNINGS]] for t in data.targets}
    facts = {"targets": [t.name for t in data.targets], "notes": list(data.notes), "warnings": told}
    return Facts(facts, volatile=frozenset({REPORT}))
