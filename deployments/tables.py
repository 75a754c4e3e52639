"""Tables that a run puts into Prefect's UI: recall, shards, accuracy, the funnel, warnings, a comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mudg_core.dataset.warning import WARNINGS
from mudg_core.evaluate.comparison import Comparison, interval_text
from mudg_core.index.recall import Point, share
from mudg_core.report.funnel import funnel_by_class
from mudg_core.report.words import arm_name
from mudg_core.storage import ArtifactRef, ArtifactStore
from tasks.executors.prefect_artifacts import MOST_ROWS, Row, Shown, table

RECALL = ("probes", "mass", "recall@1", "recall@10", "vectors read", "of the gallery", "queries/s")


def recall_line(point: Point) -> tuple[Any, ...]:
    recalls = [f"{r.value:.3f} ({r.low:.3f}-{r.high:.3f})" for r in (point.recall_at_1, point.recall_at_10)]
    of_gallery = share(point.share_read).removesuffix(" of the gallery")
    qps = f"{point.qps:,.0f}" if point.qps else ""
    return point.probes, f"{point.mass:g}", *recalls, f"{point.read:,.0f}", of_gallery, qps


def recall_table(store: ArtifactStore, recall: ArtifactRef) -> Shown:
    """Against cells read. The first line has the cost that is configured."""
    curves = json.loads(store.file(recall, "recall.json").read_text())
    rows = []
    for kind, points in curves.items():
        lines = (recall_line(Point.from_json(point)) for point in points)
        rows += [{"queries": kind} | dict(zip(RECALL[:-1], line[:-1], strict=True)) for line in lines]
    whole = store.uri(recall, "recall.json")
    return table("recall", "Recall of held-out captions and images, with 95 % intervals.", rows, f"`{whole}`")


def embedded_table(store: ArtifactStore, embeddings: Sequence[ArtifactRef]) -> Shown:
    """Of many shards the newest: reading about each is a request to the store."""
    rows: list[Row] = []
    for ref in reversed(embeddings[-MOST_ROWS:]):
        facts: Any = store.manifest(ref).facts
        refused = facts.get("refused", {})
        why = ", ".join(f"{name} × {count:,}" for name, count in sorted(refused.items()))
        rows.append({"shard": str(ref), "rows": facts["rows"], "refused": sum(refused.values()), "why": why})
    about = f"Shards of the index, newest first: {len(rows):,} of {len(embeddings):,}."
    return table("embedded", f"{about} `mudg corpus status` lists all.", rows)


def accuracy_table(name: str, scores: dict[str, Any], whole: str) -> Shown:
    """By arm and domain, over all seeds; `scores` as `tasks.results.accuracies` has them."""
    rows = [
        {"accuracy, %": arm_name(arm), "mean": spread(found), **found["domains"]}
        for arm, found in scores.items()
        if arm != "targets"
    ]
    return table(f"accuracy {name}", f"{name}: top-1 accuracy for each domain, in percent.", rows, whole)


def spread(found: dict[str, Any]) -> str:
    return f"{found['mean']:.1f}" + (f" ± {found['std']:.1f}" if found["std"] else "")


def funnel_table(
    store: ArtifactStore,
    name: str,
    classes: Sequence[str],
    made: tuple[ArtifactRef, ArtifactRef, ArtifactRef],
    whole: str,
) -> Shown:
    """`made`: candidates, labels and training set."""
    steps = funnel_by_class(store, *made, len(classes))
    by_class = zip(*steps.values(), strict=True)
    lines = zip(classes, by_class, strict=True)
    rows = [{"class": label} | dict(zip(steps, counts, strict=True)) for label, counts in lines]
    total = " → ".join(f"{sum(counts):,} {step}" for step, counts in steps.items())
    return table(f"funnel {name}", f"{name}: images of each class, step by step. {total}.", rows, whole)


def warnings_table(store: ArtifactStore, name: str, warnings: ArtifactRef, whole: str) -> list[Shown]:
    found = json.loads(store.file(warnings, WARNINGS).read_text())
    rows = [
        {"kind": one["kind"], "classes": ", ".join(one["classes"][:10]), "message": one["message"]}
        for one in found
    ]
    return [table(f"warnings {name}", f"{name}: what may be wrong.", rows, whole)] if rows else []


def comparison_table(made: Comparison, whole: str) -> Shown:
    rows = []
    for row in made.rows:
        accuracy, gain = interval_text(row.accuracy), interval_text(row.method_gain, signed=True)
        figures = {"accuracy (95 %)": accuracy or f"{row.mean:.1f}", "MUDG is better by": gain}
        domains = {domain: round(value, 1) for domain, value in row.domains.items()}
        rows.append({"group": row.group, "row": row.name, **figures, **domains})
    left = "".join(f" {name} is left out: {why}." for name, why in made.left_out.items())
    about = f"{made.target}: top-1 accuracy by the way to a classifier, in percent.{left}"
    return table(f"comparison {made.target}", about, rows, whole)
