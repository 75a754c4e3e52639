"""`make bench-gate`: how well the gate's estimate follows the truth, on the demo world's targets.

python -m benchmarks.gate [--targets N] [--seeds N] [--steps N] [--home FOLDER]

Students of three ways to train (MUDG, plain retrieval, cross entropy on a tenth of the steps) and spoilt ones
(labels by lot, classes swapped, a ruinous rate), each at every weight between zero-shot and itself: gain over
zero-shot as estimated without labels, and as measured on evaluation images. Good students are those of
`make bench-compare`, found in its store if it ran before. Kept in benchmarks/results/gate.json (a run without
flags); the last line printed is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console

import mudg.cli  # noqa: F401  (quietens Prefect and Dask, as for users)
from benchmarks.compare import HOME, ROWS_OF_CORPUS
from benchmarks.dataset.arms import demo_settings, index
from benchmarks.record import record
from flows.build_classifier import NEAREST_NEIGHBOURS, Dataset, collect, start, start_holding_out
from flows.demo import as_target
from mudg.execution import call, session
from mudg_core.corpus.demo.targets import TARGETS
from mudg_core.dataset.training_set import read_training_set, read_whole_images
from mudg_core.errors import TrainingError
from mudg_core.evaluate.gate import judge
from mudg_core.evaluate.images import EvaluationSet
from mudg_core.evaluate.measures import score_of
from mudg_core.evaluate.prompts import correlation
from mudg_core.index.version import current_version
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.target.queries import read_queries
from mudg_core.target.spec import Target
from tasks.flow import flow
from tasks.run import Run

WAYS: dict[str, Json] = {"mudg": {}, "nearest": NEAREST_NEIGHBOURS, "short": {"train": {"diversity": 0.0}}}
SPOILT: dict[str, Json] = {"by lot": {}, "swapped": {}, "ruinous": {"learning_rate": 2.0}}
STEPS = 60  # of spoilt students, which need no more
console = Console(stderr=True)


@dataclass(frozen=True)
class Made:
    """Students of one target and one way, a seed each, and what judges them."""

    target: Target
    way: str
    data: Dataset
    models: list[ArtifactRef]
    held_out: list[ArtifactRef]
    evaluation: ArtifactRef


@flow("bench-gate", "Students, good and spoilt.", run_name=lambda *_: "bench-gate")
def students(settings: Settings, targets: list[Target]) -> list[Made]:
    version = current_version(Run(settings).store)
    found = []
    for target in targets:
        for way, changes in WAYS.items():
            own = settings.replace({**changes, "evaluate": {"source": target.evaluation}})
            if way == "short":
                own = own.replace({"train": {"iterations": max(1, settings.train.iterations // 10)}})
            run = Run(own, part=f"{target.name}, {way}")
            evaluation = collect(run, target)
            started = start(run, target, version, evaluation)
            held = start_holding_out(run, target, version, started.data).results()
            models = started.training.results()
            found.append(Made(target, way, started.data, models, held, evaluation))
    return found


def judged(settings: Settings, made: Made, steps: int) -> Iterator[Json]:
    """A line for each student; spoilt ones are made here, from the training set of the first seed."""
    store = ArtifactStore(settings.storage)
    for seed, model in enumerate(made.models):
        yield _line(settings, made, made.way, seed, store.folder(model))
    for kind, changes in SPOILT.items() if made.way == "mudg" else ():
        with TemporaryDirectory() as folder:
            try:
                _spoil(settings, made, kind, {**changes, "iterations": steps, "ema": 0.95}, Path(folder))
            except TrainingError:  # so spoilt that training has refused it
                continue
            yield _line(settings, made, kind, 0, Path(folder))


def _spoil(settings: Settings, made: Made, kind: str, changes: Json, out: Path) -> None:
    from mudg_core.encode.models import load_clip
    from mudg_core.train.export import export
    from mudg_core.train.finetune import finetune

    store, clip = ArtifactStore(settings.storage), load_clip(settings.train.model)
    asked, random = read_queries(store.folder(made.data.queries)), np.random.default_rng(0)
    images, labels = read_whole_images(store.folder(made.data.by_seed[0]), clip)
    if kind == "by lot":
        labels = random.permutation(labels)
    elif kind == "swapped":
        labels = (labels + 1) % len(made.target.classes)
    own = settings.replace({"train": changes}).train
    tuned = finetune(clip, images, labels, asked.prompts(), own, 0)
    export(tuned.student, asked, out, own.temperature)


def _line(settings: Settings, made: Made, kind: str, seed: int, model: Path) -> Json:
    """Estimated and true accuracy by weight."""
    from mudg_core.encode.models import load_clip
    from mudg_core.evaluate.classifier import logits_between

    store, prompts = ArtifactStore(settings.storage), made.target.prompts()
    images = EvaluationSet.open(store.folder(made.evaluation))

    def logits(pixels: Any) -> dict[float, Any]:
        clip, own = load_clip(settings.train.model), settings
        size = own.evaluate.batch_size
        return logits_between(clip, model, prompts, pixels, own.gate.alphas, own.train.temperature, size)

    clip = load_clip(settings.train.model)
    pixels, labels = read_training_set(store.folder(made.held_out[seed]), clip)
    verdict = judge(logits(pixels), labels, settings.gate.margin)
    said: dict[float, dict[str, Any]] = {}
    for domain in images.labels:
        decoded = np.stack([clip.pixels(image) for image in images.images(domain)])
        for alpha, found in logits(decoded).items():
            said.setdefault(alpha, {})[domain] = found.argmax(axis=1)
    classes = len(made.target.classes)
    true = images.labels
    truth = {
        alpha: score_of({domain: (by[domain], true[domain]) for domain in by}, classes).mean
        for alpha, by in said.items()
    }
    return {
        "target": made.target.name,
        "way": kind,
        "seed": seed,
        "alpha": verdict.alpha,
        "better": verdict.better,
        "estimated": {item.alpha: item.accuracy for item in verdict.estimates},
        "certain": {item.alpha: item.low for item in verdict.estimates},
        "agreement": {item.alpha: item.agreement for item in verdict.estimates},
        "confidence": {item.alpha: item.confidence for item in verdict.estimates},
        "truth": {alpha: round(value, 2) for alpha, value in truth.items()},
    }


def summary(lines: list[Json]) -> Json:
    """`right`: verdicts that were true of the student at its full weight. `regret`: points that the chosen
    weight is behind the best one, zero-shot included. `optimism`: estimated gain less the true one."""
    gains = [
        (line["estimated"][alpha] - line["estimated"][0.0], line["truth"][alpha] - line["truth"][0.0])
        for line in lines
        for alpha in line["truth"]
        if alpha
    ]
    good = [line for line in lines if line["way"] in WAYS]
    behind = [max(line["truth"].values()) - line["truth"][line["alpha"]] for line in good]
    full = [(line["estimated"][1.0] - line["estimated"][0.0], _gain(line)) for line in good]
    return {
        "students": len(lines),
        "right": float(np.mean([line["better"] == (_gain(line) > 0) for line in lines])),
        "spoilt_refused": float(np.mean([not line["better"] for line in lines if line["way"] in SPOILT])),
        "good_passed": float(np.mean([bool(line["better"]) for line in good])),
        "regret": float(np.mean(behind)),
        "optimism": float(np.mean([one - other for one, other in full])),
        "correlation": correlation(gains),
    }


def _gain(line: Json) -> float:
    return float(line["truth"][1.0] - line["truth"][0.0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--targets", type=int, default=len(TARGETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS, help="of spoilt students")
    parser.add_argument("--corpus", type=int, default=ROWS_OF_CORPUS, help="rows of the corpus")
    parser.add_argument("--home", type=Path, default=HOME)
    asked = parser.parse_args()
    targets = [as_target(target, range(asked.seeds)) for target in TARGETS[: asked.targets]]
    with session(demo_settings(asked.home, asked.corpus)) as settings:
        index(settings)
        made = call(students, settings, targets)
        lines = []
        for one in made:
            for line in judged(settings, one, asked.steps):
                console.print_json(json.dumps(line))
                lines.append(line)
    figures = {name: value and round(value, 4) for name, value in summary(lines).items()}
    if len(sys.argv) == 1:
        record("gate", {"line": figures, "detail": lines})
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
