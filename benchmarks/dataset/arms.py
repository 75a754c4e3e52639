"""Training sets of the demo's targets, made in several ways on one index, and the students trained on them.

All of it runs through the flows and stages that users run; a second run finds everything made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.build_classifier import Dataset, build_dataset, collect
from flows.build_index import build_index
from flows.demo import DEMO_SETTINGS
from mudg.execution import call
from mudg_core.index.version import IndexVersion, current_version
from mudg_core.settings import Settings, load_settings
from mudg_core.storage import ArtifactRef
from mudg_core.target.spec import Target
from tasks.flow import flow
from tasks.run import Run
from tasks.train import evaluate, train

Overrides = Mapping[str, Any]


@dataclass(frozen=True)
class Made:
    """What one way has made of one target; no accuracy where nothing was trained."""

    target: Target
    data: Dataset
    accuracy: float | None


def demo_settings(home: Path, rows: int) -> Settings:
    """Those of `mudg demo`, with a store in `home`; the developer's own environment has no say."""
    storage = {"url": f"file://{home.absolute()}", "cache_dir": str(home.absolute() / "cache")}
    overrides = {"storage": storage, "corpus": {"rows": rows, "source": "demo"}}
    return load_settings([DEMO_SETTINGS], overrides=overrides, environ={})


def index(ready: Settings) -> IndexVersion:
    return call(build_index, ready).version


def made(ready: Settings, targets: Sequence[Target], ways: Mapping[str, Overrides], trained: bool) -> Any:
    """By way and then by target: training sets, and the accuracy of students if they are wanted."""
    return call(_make, ready, list(targets), dict(ways), trained)


@flow("bench-dataset", "Training sets, made in several ways.", run_name=lambda *_: "bench-dataset")
def _make(
    settings: Settings, targets: list[Target], ways: dict[str, Overrides], trained: bool
) -> dict[str, list[Made]]:
    version = current_version(Run(settings).store)
    found: dict[str, list[Made]] = {}
    for name, overrides in ways.items():
        for target in targets:
            run = Run(settings.replace({**overrides, "evaluate": {"source": target.evaluation}}), part=name)
            evaluation = collect(run, target) if target.evaluation else None
            data = build_dataset(run, target, version, evaluation)
            score = accuracy(run, target, data, evaluation) if trained and evaluation else None
            found.setdefault(name, []).append(Made(target, data, score))
    return found


def accuracy(run: Run, target: Target, data: Dataset, evaluation: ArtifactRef) -> float:
    """Of the student trained on a target's first training set: mean over domains, in percent."""
    model = train(run, dataset=data.by_seed[0], queries=data.queries, seed=target.seeds[0])
    scores = evaluate(run, models=[model], names=["mudg"], queries=data.queries, evaluation=evaluation)
    return float(str(run.store.manifest(scores).facts["mudg"]))
