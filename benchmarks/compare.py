"""`make bench-compare`: rows of `mudg compare` on the demo world, three targets and three seeds.

python -m benchmarks.compare [--rows ROWS] [--targets NAMES] [--seeds N] [--iterations N] [--home FOLDER]
  [--keep]

Without --rows these are the ones that README and docs quote (`QUOTED`); `--rows all` (`ROWS=all`) are all.
Every row that is trained costs nine trainings and evaluations, a minute and a half of a core each: with ten
of them that makes about 80 minutes on two cores, with all 26 about three hours (estimated, not timed). What
was made stays in .mudg/bench-compare, so a run that was stopped goes on where it was. With any flag it is a
trial, and nothing is kept but with --keep; else figures are kept in benchmarks/results/compare.json. A run of
some targets keeps the figures of the others, with commit and machine of each. The last line printed
is one JSON object: `rows` has each row's mean over targets with its 95 % interval (`low`, `high`), and
`mudg_against` what MUDG is better by on the same images and seeds (`paired_gain`, `low`, `high`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import mudg.cli  # noqa: F401  (quietens Prefect and Dask, as for users)
from benchmarks.dataset.arms import demo_settings, index
from benchmarks.record import figures, record, stamps
from flows.compare import compare
from flows.compare_rows import ROWS
from flows.demo import as_target
from mudg.cli.compare import comparison_text
from mudg.execution import call, session
from mudg_core.corpus.demo.targets import TARGET_BY_NAME, TARGETS
from mudg_core.evaluate.comparison import COMPARISON, Comparison, overall
from mudg_core.evaluate.uncertainty import Estimate
from mudg_core.storage import ArtifactStore
from tasks.results import counts

HOME = Path(".mudg/bench-compare/.mudg")
ROWS_OF_CORPUS = 24_000
ALL = "all"
QUOTED = (
    "zero-shot",
    "templates",
    "waffle-words",
    "waffle-characters",
    "random-descriptors",
    "adaptive",
    "mudg",
    "nearest-neighbours",
    "nearest-neighbours-plain",
    "tip-adapter",
    "tip-x",
    "index-kmeans",
    "kmeans-cross-entropy",
    "label-cosine",
    "augment-none",
    "loss-cross-entropy",
    "loss-soft-labels",
    "few-shot",
)
console = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", default="", help=f"names, with commas between, or {ALL}")
    parser.add_argument("--targets", default="", help="names, with commas between")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, help="of training, in place of the demo's")
    parser.add_argument("--corpus", type=int, default=ROWS_OF_CORPUS, help="rows of the corpus")
    parser.add_argument("--home", type=Path, default=HOME)
    parser.add_argument("--keep", action="store_true", help="keep the figures of a trial")
    asked = parser.parse_args()
    comparisons, done = run(asked)
    kept = asked.keep or len(sys.argv) == 1
    known = figures("compare") if kept else {}
    told = stamps(known, [one.target for one in comparisons])
    comparisons = with_kept(comparisons, known)
    pages = [overall(comparisons), *comparisons]
    for page in pages:
        console.print(comparison_text(page), "\n", markup=False, highlight=False)
    line = summary(pages[0])
    if kept:
        body = [page.to_json() for page in pages]
        record("compare", {"line": line, **told, "comparisons": body, **done})
    sys.stdout.write(json.dumps(line) + "\n")


def with_kept(comparisons: Sequence[Comparison], kept: dict[str, Any]) -> list[Comparison]:
    """With the targets that were measured before and not now, in the demo's order. Targets are trained and
    evaluated apart, so one can be measured again without the others."""
    known = [Comparison.from_json(body) for body in kept.get("comparisons", [])[1:]]
    by_target = {one.target: one for one in (*known, *comparisons)}
    return [by_target[target.name] for target in TARGETS if target.name in by_target]


def rows_asked(text: str) -> list[str]:
    """Those named, all, or those that are quoted."""
    if text == ALL:
        return [row.name for row in ROWS]
    return [name for name in text.split(",") if name] or list(QUOTED)


def summary(made: Comparison) -> dict[str, dict[str, dict[str, float]]]:
    """Intervals are over evaluation images and seeds, 95 %."""
    rows = {row.name: _figures(row.accuracy, "mean") for row in made.rows if row.accuracy}
    gains = {row.name: _figures(row.method_gain, "paired_gain") for row in made.rows if row.method_gain}
    return {"rows": rows, "mudg_against": gains}


def _figures(estimate: Estimate, name: str) -> dict[str, float]:
    return {name: round(estimate.mean, 2), "low": round(estimate.low, 2), "high": round(estimate.high, 2)}


def run(asked: argparse.Namespace) -> tuple[list[Comparison], dict[str, Any]]:
    """The comparison of each target, and what this run did for them."""
    names = [name for name in asked.targets.split(",") if name] or list(TARGET_BY_NAME)
    targets = [as_target(TARGET_BY_NAME[name], range(asked.seeds)) for name in names]
    with session(demo_settings(asked.home, asked.corpus)) as settings:
        index(settings)
        built = call(compare, settings, targets, rows_asked(asked.rows), asked.iterations)
        store = ArtifactStore(settings.storage)
        bodies = [json.loads(store.file(ref, COMPARISON).read_text()) for ref in built.comparisons]
        return [Comparison.from_json(body) for body in bodies], counts(built.records)


if __name__ == "__main__":
    main()
