"""`mudg compare`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from mudg.cli.command import Flags, Output, command
from mudg.cli.demo import DEMO_SETTINGS
from mudg.cli.output import table_of
from mudg_core.errors import InputError

if TYPE_CHECKING:
    from mudg_core.evaluate.comparison import Comparison
    from mudg_core.target.spec import Target

app = typer.Typer()
DEMO = "demo:"
QUICK = 20  # steps


@command(app, "compare")
def run_compare(
    targets: Annotated[list[str], Argument(help="Target specs (YAML), or demo:NAME.")],
    flags: Flags,
    rows: Annotated[
        str | None, Option(help="Only these rows, separated by commas.", show_default="all")
    ] = None,
    groups: Annotated[
        str | None, Option(help="Only these groups of rows, separated by commas.", show_default="all")
    ] = None,
    seeds: Annotated[
        int | None,
        Option(min=1, max=32, help="Number of seeds, from 0 up.", show_default="each target's own"),
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="20 steps of training: to see that all works, not who wins.")
    ] = False,
) -> Output:
    """Compare MUDG with baselines, ablations and labelled images, on targets with evaluation images.

    Prompts alone, plain retrieval, ways to select images, adapters without training, ablations, profiles, and
    16 labelled images a class instead of retrieved ones. Rows share what they have in common; a second run
    computes what is new. docs/compare.md explains every row. Examples:

        mudg compare animals.yaml
        mudg compare demo:animals --groups prompts,retrieval --seeds 3
    """
    from mudg_core.target.spec import load_target

    named = [name for name in targets if not name.startswith(DEMO)]
    specs = {name: load_target(name) for name in named}
    settings = flags.settings(None if named else DEMO_SETTINGS)
    from flows.compare import compare
    from flows.compare_rows import chosen_rows
    from flows.study_prompts import check_evaluation
    from mudg.cli.progress import watched
    from mudg.execution import call
    from mudg_core.evaluate.comparison import COMPARISON, Comparison
    from mudg_core.storage import ArtifactStore
    from tasks.compare import PAGE
    from tasks.results import counts, publish

    row_names = [row.name for row in chosen_rows(_listed(rows), _listed(groups))]
    chosen = [_seeded(specs.get(name) or _demo_target(name), seeds) for name in targets]
    for target in chosen:
        check_evaluation(target)
    with watched(settings) as ready:
        built = call(compare, ready, chosen, row_names, QUICK if quick else None)
        store = ArtifactStore(ready.storage)
        body = json.loads(store.file(built.page, COMPARISON).read_text())
        path = publish(store, built.page, "compare", ready, PAGE)
    result = {"comparisons": body, **counts(built.records), "report": str(path)}
    tables = [comparison_text(Comparison.from_json(one)) for one in body]
    return Output(result, "\n\n".join([*tables, f"report: {path}"]))


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _demo_target(name: str) -> Target:
    from flows.demo import as_target
    from mudg_core.corpus.demo.targets import TARGET_BY_NAME

    target = TARGET_BY_NAME.get(name.removeprefix(DEMO))
    if target is None:
        raise InputError(
            what=f"there is no demo target {name.removeprefix(DEMO)[:80]!r}",
            fix=f"take one of {', '.join(DEMO + known for known in TARGET_BY_NAME)}",
        )
    return as_target(target, (0,))


def _seeded(target: Target, seeds: int | None) -> Target:
    return target.model_copy(update={"seeds": tuple(range(seeds))}) if seeds else target


def comparison_text(comparison: Comparison) -> str:
    """The table of one target, with an empty line between groups."""
    from mudg_core.evaluate.comparison import interval_text

    domains = list(dict.fromkeys(domain for row in comparison.rows for domain in row.domains))
    backbones = comparison.backbones()
    lines: list[Sequence[str]] = []
    group = ""
    for row in comparison.rows:
        if group and row.group != group:
            lines.append([""] * (4 + len(domains) + len(backbones)))
        group = row.group
        accuracy = interval_text(row.accuracy) or f"{row.mean:.1f}"
        gain = interval_text(row.method_gain, signed=True)
        cells = [f"{row.domains[d]:.1f}" if d in row.domains else "" for d in domains]
        paper = [f"{row.paper[b]:.1f}" if b in row.paper else "" for b in backbones]
        lines.append([row.group, row.name, accuracy, gain, *cells, *paper])
    columns = ["accuracy (95 %)", "MUDG is better by", *domains, *(f"paper, {b}" for b in backbones)]
    header = ["group", f"{comparison.target}, %", *columns]
    notes = [f"{name} is left out: {why}" for name, why in comparison.left_out.items()]
    return "\n".join([table_of(lines, header), *notes])
