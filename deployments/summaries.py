"""What a flow leaves in Prefect's UI at its end: what was made, how good it is, from what, how to use it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from deployments.tables import (
    accuracy_table,
    comparison_table,
    embedded_table,
    funnel_table,
    recall_table,
    spread,
    warnings_table,
)
from mudg_core.dataset.training_set import PROVENANCE, TAR
from mudg_core.evaluate.comparison import COMPARISON, Comparison
from mudg_core.evaluate.gate import VERDICT
from mudg_core.index.recall import Point
from mudg_core.report.words import arm_name, duration
from mudg_core.settings import ComputeSettings, Settings
from mudg_core.stage_names import stage_name
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.train.card import BETTER, CARD_FILE
from tasks.compare import PAGE
from tasks.executors.prefect_artifacts import Shown, escape_markdown, link, link_to, markdown, table
from tasks.report import REPORT
from tasks.results import accuracies, counts
from tasks.run import StageRecord

if TYPE_CHECKING:
    from flows.build_classifier import ClassifierBuild
    from flows.build_index import IndexBuild
    from flows.compare import ComparisonBuild
    from flows.demo import DemoBuild
    from flows.study_prompts import PromptsBuild

# Where and how it ran: nothing there decides what was made, but for the device.
IMPERSONAL: Any = {
    "storage": True,
    "gc": True,
    "compute": set(ComputeSettings.model_fields) - {"device"},
}


def index_shown(store: ArtifactStore, settings: Settings, built: IndexBuild) -> list[Shown]:
    version, facts = built.version, store.manifest(built.version.index).facts
    point = Point.from_json(store.manifest(built.recall).facts["configured"])  # type: ignore[arg-type]
    plot = _address(store, built.recall, "recall.svg", "recall against vectors read")
    lines = [
        f"# Index {version.index}",
        f"- {facts['rows']:,} images in {facts['cells']:,} cells, {facts['variant']}, code {facts['code']}",
        f"- recall@1 of held-out captions: {point.recall_at_1}, with {point.cost()}",
        f"- {plot}",
        f"- **not promoted**: {escape_markdown(built.note, 1000)}" if built.note else "- it is current now",
        *_use("mudg search 'a photo of a cat'", "mudg target run SPEC.yaml"),
        *_end(store, settings, built.records, version.index),
    ]
    summary = markdown("summary build-index", f"What was built: `{version.index}`.", lines)
    return [summary, recall_table(store, built.recall), embedded_table(store, version.embeddings)]


def classifier_shown(store: ArtifactStore, settings: Settings, built: ClassifierBuild) -> list[Shown]:
    target, data = built.target, built.mudg.data
    page = store.link(built.report, REPORT)
    whole, scores = link_to("the report", page), accuracies(store, [built])
    warnings = warnings_table(store, target.name, built.warnings, whole)
    lines = [
        f"# Classifier {target.name}",
        *([escape_markdown(target.description, 1000), ""] if target.description else []),
        f"- {link_to('report', page)}",
        f"- classifier: `{built.classifier}`, {_address(store, built.classifier, CARD_FILE, 'model card')}",
        *(f"- training set: {_training_set(store, ref)}" for ref in data.by_seed),
        *([f"- accuracy: {_accuracy(scores)}"] if scores else ["- accuracy: no evaluation images"]),
        *(f"- {line}" for line in _verdicts(store, built.verdicts)),
        *([f"- **warnings**: see the table `{warnings[0].key}`"] if warnings else []),
        *_use(f"mudg predict {target.name} IMAGES", f"mudg model export {target.name} FOLDER"),
        *_end(store, settings, built.records, built.classifier),
    ]
    made = (data.found, data.labels, data.by_seed[0])
    return [
        markdown(f"summary {target.name}", f"What was made for {target.name}.", lines, whole),
        link(f"report {target.name}", f"Everything about {target.name}, as a page.", "the report", page),
        *([accuracy_table(target.name, scores, whole)] if scores else []),
        funnel_table(store, target.name, target.classes, made, whole),
        *warnings,
    ]


def comparison_shown(store: ArtifactStore, settings: Settings, built: ComparisonBuild) -> list[Shown]:
    page = store.link(built.page, PAGE)
    whole = link_to("the comparison", page)
    made = [Comparison.from_json(one) for one in json.loads(store.file(built.page, COMPARISON).read_text())]
    best = [(one.target, max(one.rows, key=lambda row: row.mean)) for one in made]
    lines = [
        "# Comparison",
        f"- {link_to('all rows', page)}",
        *(f"- {name}: best is {row.name}, {row.mean:.1f} %" for name, row in best),
        *_end(store, settings, built.records, built.page),
    ]
    return [
        markdown("summary compare", "What was compared.", lines, whole),
        link("report compare", "All rows, as a page.", "the comparison", page),
        *(comparison_table(one, whole) for one in made),
    ]


def prompts_shown(store: ArtifactStore, settings: Settings, built: PromptsBuild) -> list[Shown]:
    name = built.target.name
    facts: Any = store.manifest(built.study).facts
    rows = [{"prompts": method, "accuracy, %": round(value, 2)} for method, value in facts.items()]
    plot = _address(store, built.study, "prompts.svg", "accuracy by method")
    lines = [f"# Prompts of {name}", f"- {plot}", *_end(store, settings, built.records, built.study)]
    about = f"{name}: zero-shot accuracy by prompts."
    return [markdown(f"summary prompts {name}", about, lines), table(f"prompts {name}", about, rows)]


def demo_shown(store: ArtifactStore, settings: Settings, built: DemoBuild) -> list[Shown]:
    page = store.link(built.report, REPORT)
    scores = accuracies(store, built.builds)
    lines = [
        "# Demo",
        f"- {link_to('report', page)}",
        f"- accuracy over all targets: {_accuracy(scores)}",
        *_use(*(f"mudg predict {one.target.name} IMAGES" for one in built.builds)),
        *_end(store, settings, built.records, built.report),
    ]
    parts = index_shown(store, settings, built.index)
    for one in built.builds:
        parts += classifier_shown(store, settings, one)
    return [
        *parts,
        markdown("summary demo", "What the demo has made.", lines),
        accuracy_table("demo", scores, link_to("the report", page)),
        link("report demo", "Everything about the demo, as a page.", "the report", page),
    ]


def _accuracy(scores: dict[str, Any]) -> str:
    found = [(arm_name(arm), spread(one)) for arm, one in scores.items() if arm != "targets"]
    return ", ".join(f"{name} {percent} %" for name, percent in reversed(found))


def _verdicts(store: ArtifactStore, verdicts: Sequence[ArtifactRef]) -> Iterator[str]:
    for ref in verdicts:
        body = json.loads(store.file(ref, VERDICT).read_text())
        reason = escape_markdown(body["reasons"][0], 1000)
        yield f"gate, without labels: **{BETTER[body['better']]}**. {reason}"


def _address(store: ArtifactStore, ref: ArtifactRef, file: str, words: str) -> str:
    return link_to(words, store.link(ref, file))


def _training_set(store: ArtifactStore, ref: ArtifactRef) -> str:
    images = f"{store.manifest(ref).facts['images']:,} images"
    origin = _address(store, ref, PROVENANCE, "where each came from")
    return f"`{ref}`, {_address(store, ref, TAR, images)}, {origin}"


def _expiry(store: ArtifactStore) -> Iterator[str]:
    """Signed links end, and nobody can see that from one."""
    if store.url.startswith("s3:") and not store.settings.browse_url:
        hours = store.settings.link_hours
        yield ""
        yield f"Links on this page open for {f'{hours / 24:g} days' if hours >= 48 else f'{hours:g} hours'}."


def _use(*commands: str) -> list[str]:
    return ["", "## Use it", "```", *commands, "```"]


def _end(
    store: ArtifactStore, settings: Settings, records: Sequence[StageRecord], made: ArtifactRef
) -> list[str]:
    changed = [
        f"- {escape_markdown(name)}: {escape_markdown(str(value))}"
        for name, value in changed_settings(settings)
    ]
    return [
        *("", "## Done by this run", *_stages(records)),
        *("", "## Settings that differ from the defaults", *(changed or ["- none"])),
        *("", "## Made from", *_parents(store, made)),
        *("", f"`mudg lineage {made}` shows all that it was made from.", *_expiry(store)),
    ]


def _stages(records: Sequence[StageRecord]) -> Iterator[str]:
    found = counts(records)
    yield f"{found['computed']:,} computed, {found['cached']:,} cached"
    yield from ("", "| stage | computed | cached | time |", "|---|---:|---:|---:|")
    for stage, seconds in found["seconds"].items():
        own = counts([record for record in records if record.stage == stage])
        yield f"| {stage_name(stage)} | {own['computed']:,} | {own['cached']:,} | {duration(seconds)} |"


def _parents(store: ArtifactStore, made: ArtifactRef) -> Iterator[str]:
    for role, parents in store.manifest(made).recipe.parents.items():
        if isinstance(parents, ArtifactRef):
            yield f"- {role.replace('_', ' ')}: `{parents}`"
        elif parents:
            more = f" and {len(parents) - 1:,} more" if len(parents) > 1 else ""
            yield f"- {role.replace('_', ' ')}: `{parents[0]}`{more}"


def changed_settings(settings: Settings) -> list[tuple[str, Any]]:
    """Those that decide results, by their paths."""
    now, usual = (tree.model_dump(mode="json", exclude=IMPERSONAL) for tree in (settings, Settings()))
    found: list[tuple[str, Any]] = []
    for area, values in now.items():
        if isinstance(values, dict):
            found += [(f"{area}.{name}", v) for name, v in values.items() if v != usual[area][name]]
        elif values != usual[area]:
            found.append((area, values))
    return found
