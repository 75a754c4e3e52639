"""`mudg compare`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mudg.cli.output import settings_from, show, table_of
from mudg_core.corpus.demo.targets import TARGET_BY_NAME
from mudg_core.errors import InputError
from mudg_core.evaluate.comparison import COMPARISON, Comparison, interval_text
from mudg_core.target.spec import Target, load_target

DEMO = "demo:"
QUICK = 20  # steps


@dataclass(frozen=True)
class Asked:
    """The command line."""

    targets: tuple[str, ...]
    rows: str | None
    groups: str | None
    seeds: int | None
    quick: bool


def run_compare(asked: Asked, as_json: bool, file: Path | None, changes: list[str] | None) -> None:
    named = [name for name in asked.targets if not name.startswith(DEMO)]
    targets = {name: load_target(name) for name in named}  # a bad spec is told before Prefect is loaded

    from flows.compare import compare
    from flows.compare_rows import chosen_rows
    from flows.demo import DEMO_SETTINGS
    from flows.study_prompts import check_evaluation
    from mudg.cli.runs import watched
    from mudg.execution import call
    from mudg_core.storage import ArtifactStore
    from tasks.compare import PAGE
    from tasks.results import counts, publish

    rows = [row.name for row in chosen_rows(_listed(asked.rows), _listed(asked.groups))]
    chosen = [_seeded(targets.get(name) or _demo_target(name), asked.seeds) for name in asked.targets]
    for target in chosen:
        check_evaluation(target)
    base = None if named else DEMO_SETTINGS
    with watched(settings_from(file, changes, base)) as settings:
        built = call(compare, settings, chosen, rows, QUICK if asked.quick else None)
        store = ArtifactStore(settings.storage)
        body = json.loads(store.file(built.page, COMPARISON).read_text())
        path = publish(store, built.page, "compare", settings, PAGE)
    result = {"comparisons": body, **counts(built.records), "report": str(path)}
    text = "\n\n".join(comparison_text(Comparison.from_json(one)) for one in body)
    show(result, f"{text}\n\nreport: {path}", as_json)


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _demo_target(name: str) -> Target:
    from flows.demo import as_target

    found = TARGET_BY_NAME.get(name.removeprefix(DEMO))
    if found is None:
        raise InputError(
            what=f"there is no demo target {name.removeprefix(DEMO)[:80]!r}",
            fix=f"take one of {', '.join(DEMO + known for known in TARGET_BY_NAME)}",
        )
    return as_target(found, (0,))


def _seeded(target: Target, seeds: int | None) -> Target:
    return target.model_copy(update={"seeds": tuple(range(seeds))}) if seeds else target


def comparison_text(made: Comparison) -> str:
    """The table of one target, with an empty line between groups."""
    domains = list(dict.fromkeys(domain for row in made.rows for domain in row.domains))
    backbones = made.backbones()
    lines: list[Sequence[str]] = []
    group = ""
    for row in made.rows:
        if group and row.group != group:
            lines.append([""] * (4 + len(domains) + len(backbones)))
        group = row.group
        accuracy = interval_text(row.accuracy) or f"{row.mean:.1f}"
        gain = interval_text(row.method_gain, signed=True)
        cells = [f"{row.domains[d]:.1f}" if d in row.domains else "" for d in domains]
        paper = [f"{row.paper[b]:.1f}" if b in row.paper else "" for b in backbones]
        lines.append([row.group, row.name, accuracy, gain, *cells, *paper])
    columns = ["accuracy (95 %)", "MUDG is better by", *domains, *(f"paper, {b}" for b in backbones)]
    header = ["group", f"{made.target}, %", *columns]
    notes = [f"{name} is left out: {why}" for name, why in made.left_out.items()]
    return "\n".join([table_of(lines, header), *notes])
