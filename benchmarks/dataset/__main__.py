"""`make bench-dataset`: training sets of the demo's targets against the truth, and how fast they are made.

python -m benchmarks.dataset [truth] [hubs] [selection] [absent] [speed] [--tiny]

Without names all parts run (about half an hour on two cores). Figures are kept in
benchmarks/results/dataset.json, part by part with the commit they were measured at; the last line printed is
one JSON object with all of them. `--tiny` tries everything on a small corpus, and keeps nothing.

  truth      share of pseudo-labels that are right, by class and in all; copies among what was chosen
  hubs       images that a label gets once it is near to everything, by rank and by cosine
  selection  every selection method: precision, copies, coverage, styles, accuracy of the student
  absent     how well classes are told that the corpus lacks
  speed      seconds for labels and selection at the size of ImageNet
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mudg.cli  # noqa: F401  (quietens Prefect and Dask, as for users)
from benchmarks.dataset import arms, measure, speed
from benchmarks.dataset.hubs import WAYS
from benchmarks.memory import watched
from benchmarks.parts import Figures, Found, parser_of, run_parts
from benchmarks.record import details, keep, rounded
from mudg_core.settings import Settings
from tasks.executors.session import session

HOME = Path(".mudg/bench-dataset/.mudg")
Corpus = Callable[[], Settings]  # a session with an index, opened when it is first asked for


@dataclass(frozen=True)
class Sizes:
    rows: int = 24_000
    train_steps: int = 200
    queries: int = 16_000
    labels: int = 1_000
    images: int = 1_000


TINY = Sizes(rows=3_000, train_steps=2, queries=160, labels=4, images=200)


def main() -> None:
    asked = parser_of(__doc__, PARTS).parse_args()
    sizes, home = (TINY, HOME.with_name("tiny")) if asked.tiny else (Sizes(), HOME)
    with ExitStack() as stack:

        def measured(name: str) -> Found:
            with watched(os.getpid()) as peak:
                line, detail = PARTS[name](sizes, lambda: opened(stack, home, sizes.rows))
            return line, detail | {"peak_gb": peak[0] / 1e9}

        run_parts(asked.parts or PARTS, measured, tried() if asked.tiny else kept)


def tried() -> Callable[[str, Figures, Figures], Figures]:
    peaks: list[float] = []

    def told(part: str, line: Figures, detail: Figures) -> Figures:
        peaks.append(detail["peak_gb"])
        return rounded(line | {"peak_gb": max(peaks)})

    return told


def kept(part: str, line: Figures, detail: Figures) -> Figures:
    """The peak is that of the hungriest part, whenever it was measured."""
    others = {name: found for name, found in details("dataset").items() if name != part}
    most = max(found["peak_gb"] for found in [detail, *others.values()])
    return keep("dataset", part, line | {"peak_gb": most}, detail)


@cache
def opened(stack: ExitStack, home: Path, rows: int) -> Settings:
    """One session with an index for all parts that need them: Prefect's client does not survive a second
    server in one process."""
    ready = stack.enter_context(session(arms.demo_settings(home, rows)))
    arms.index(ready)
    return ready


def truth(sizes: Sizes, corpus: Corpus) -> Found:
    found = measure.against_truth(corpus())
    mean = sum(target["labelled"]["all"] for target in found.values()) / len(found)
    copies = sum(target["duplicate_rate"] for target in found.values()) / len(found)
    return {"precision": mean, "duplicate_rate": copies}, found


def hubs(sizes: Sizes, corpus: Corpus) -> Found:
    found = measure.labels_as_hubs(corpus())
    line = {f"hub_excess_{way}": found["mean"][way] for way in WAYS}
    return line, found | {"generic": measure.generic_classes(corpus())}


def selection(sizes: Sizes, corpus: Corpus) -> Found:
    return {}, measure.selection_methods(corpus(), sizes.train_steps)


def absent(sizes: Sizes, corpus: Corpus) -> Found:
    found = measure.absent_concepts(corpus())
    return {"absent_concept_auc": found["auc"]}, found


def seconds(sizes: Sizes, corpus: Corpus) -> Found:
    line = {
        "label_seconds": speed.label_seconds(sizes.queries),
        "select_seconds": speed.select_seconds(sizes.labels, sizes.images),
    }
    return line, dict(line)


PARTS: dict[str, Callable[[Sizes, Corpus], Found]] = {
    "truth": truth,
    "hubs": hubs,
    "selection": selection,
    "absent": absent,
    "speed": seconds,
}

if __name__ == "__main__":
    main()
