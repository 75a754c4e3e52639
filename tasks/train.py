"""A training set to a model, and a model to scores.

What needs torch is imported where it is called: flows import this module also when nothing is to be computed.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger

from mudg_core.dataset.training_set import read_training_set
from mudg_core.evaluate.images import EvaluationSet
from mudg_core.settings import TrainSettings
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.queries import read_queries
from tasks.policy import Work, stage
from tasks.stopping import stopping

# All but the model, whose weights count, and how often checkpoints are kept, which changes nothing. Sizes of
# chunks change how sums are rounded.
TRAIN = tuple(
    f"train.{name}"
    for name in TrainSettings.model_fields
    if name not in ("model", "checkpoint_every", "checkpoint_seconds")
)


@stage("model", algorithm=2, settings=TRAIN, weights=("train.model",), gpu=True)
def train(work: Work, *, dataset: ArtifactRef, queries: ArtifactRef, seed: int) -> Facts:
    """The finetuned student, as files that open_clip loads."""
    from mudg_core.train.export import export
    from mudg_core.train.finetune import finetune
    from mudg_core.train.watch import Watch

    settings, asked = work.settings.train, read_queries(work.store.folder(queries))
    clip = work.clip(settings.model)
    pixels, labels = read_training_set(work.store.folder(dataset), clip)
    with Watch(work.scratch / "tensorboard", settings.iterations, _log()) as watch, stopping() as stop:
        tuned = finetune(
            clip,
            pixels,
            labels,
            asked.prompts(),
            settings,
            seed,
            progress=watch,
            checkpoints=work.checkpoints,
            interrupted=stop,
        )
    export(tuned.student, asked, work.scratch, settings.temperature)
    (work.scratch / "losses.json").write_text(json.dumps(tuned.losses))
    facts = {"images": len(pixels), "initial_share": tuned.initial_share, "last_loss": tuned.losses[-1]}
    return Facts(facts, volatile=frozenset({watch.file.relative_to(work.scratch).as_posix()}))


def _log() -> Any:
    """Prefect's, where it runs the stage: its lines are seen beside the run."""
    try:
        return get_run_logger()
    except MissingContextError:
        return logging.getLogger(__name__)


@stage("scores", settings=("evaluate.batch_size",), weights=("train.model",), gpu=True)
def evaluate(
    work: Work, *, models: list[ArtifactRef], names: list[str], queries: ArtifactRef, evaluation: ArtifactRef
) -> Facts:
    """Accuracy per domain of the student before (`zero_shot`) and after finetuning (`models` by `names`)."""
    from mudg_core.evaluate.classifier import finetuned, zero_shot

    device, size = work.settings.compute.device, work.settings.evaluate.batch_size
    images = EvaluationSet.open(work.store.folder(evaluation))
    asked = read_queries(work.store.folder(queries))
    arms = {"zero_shot": zero_shot(work.clip(work.settings.train.model), asked)}
    arms |= {name: finetuned(work.store.folder(ref), device) for name, ref in zip(names, models, strict=True)}
    results = {name: arm.scores(images, size) for name, arm in arms.items()}
    body = {name: {way: asdict(found) for way, found in ways.items()} for name, ways in results.items()}
    (work.scratch / "scores.json").write_text(json.dumps(body, indent=1))
    return Facts({name: ways["single"].mean for name, ways in results.items()})
