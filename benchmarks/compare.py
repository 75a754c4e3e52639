"""`make bench-compare`: all rows of `mudg compare` on the demo world, three targets and three seeds.

python -m benchmarks.compare [--rows ROWS] [--targets N] [--seeds N] [--iterations N] [--home FOLDER] [--keep]

Every row that is trained costs nine trainings and evaluations, a minute and a half of a core each. What was
made stays in .mudg/bench-compare, so a run that was stopped goes on where it was. With any flag it is a
trial, and nothing is kept but with --keep; else figures are kept in benchmarks/results/compare.json. The
last line printed is one JSON object: `rows` has each row's mean over targets with its 95 % interval (`low`,
`high`), and `mudg_against` what MUDG is better by on the same images and seeds (`paired_gain`, `low`,
`high`).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

import flows.cli  # noqa: F401  (quietens Prefect and Dask, as for users)
from benchmarks.dataset.arms import demo_settings, index
from benchmarks.record import record
from flows.cli.compare import comparison_text
from flows.compare import compare
from flows.compare_rows import ROWS
from flows.demo import as_target
from flows.results import counts
from flows.session import call, session
from mudg_core.corpus.demo.targets import TARGETS
from mudg_core.evaluate.comparison import COMPARISON, Comparison
from mudg_core.evaluate.uncertainty import Estimate
from mudg_core.storage import ArtifactStore

HOME = Path(".mudg/bench-compare/.mudg")
ROWS_OF_CORPUS = 24_000
console = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", default="", help="names, with commas between")
    parser.add_argument("--targets", type=int, default=len(TARGETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, help="of training, in place of the demo's")
    parser.add_argument("--corpus", type=int, default=ROWS_OF_CORPUS, help="rows of the corpus")
    parser.add_argument("--home", type=Path, default=HOME)
    parser.add_argument("--keep", action="store_true", help="keep the figures of a trial")
    asked = parser.parse_args()
    body, done = run(asked)
    for one in body:
        console.print(comparison_text(Comparison.from_json(one)), "\n", markup=False, highlight=False)
    line = summary(Comparison.from_json(body[0]))
    if asked.keep or len(sys.argv) == 1:
        record("compare", {"line": line, "comparisons": body, **done})
    sys.stdout.write(json.dumps(line) + "\n")


def summary(made: Comparison) -> dict[str, dict[str, dict[str, float]]]:
    """Intervals are over evaluation images and seeds, 95 %."""
    rows = {row.name: _figures(row.accuracy, "mean") for row in made.rows if row.accuracy}
    gains = {row.name: _figures(row.method_gain, "paired_gain") for row in made.rows if row.method_gain}
    return {"rows": rows, "mudg_against": gains}


def _figures(estimate: Estimate, name: str) -> dict[str, float]:
    return {name: round(estimate.mean, 2), "low": round(estimate.low, 2), "high": round(estimate.high, 2)}


def run(asked: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The comparisons, that over all targets first, and what this run did for them."""
    names = [name for name in asked.rows.split(",") if name] or [row.name for row in ROWS]
    targets = [as_target(target, range(asked.seeds)) for target in TARGETS[: asked.targets]]
    with session(demo_settings(asked.home, asked.corpus)) as settings:
        index(settings)
        built = call(compare, settings, targets, names, asked.iterations)
        store = ArtifactStore(settings.storage)
        return json.loads(store.file(built.page, COMPARISON).read_text()), counts(built.records)


if __name__ == "__main__":
    main()
