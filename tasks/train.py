"""A training set to a model, and a model to scores."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np

from mudg_core.dataset.training_set import read_training_set
from mudg_core.encode.models import load_clip
from mudg_core.evaluate.accuracy import Score, score
from mudg_core.evaluate.images import read_evaluation
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.spec import Target
from mudg_core.train.export import export, load_classifier
from mudg_core.train.finetune import finetune
from tasks.policy import Work, stage

TRAIN = tuple(
    f"train.{name}"
    for name in [
        "blocks",
        "prompt_tokens",
        "prompt_rate_factor",
        "iterations",
        "batch_size",
        "learning_rate",
        "momentum",
        "weight_decay",
        "temperature",
        "teacher_temperature",
        "diversity",
        "augmentations",
        "augmentation_limit",
        "ema",
        "min_crop",
    ]
)


@stage("model", settings=TRAIN, weights=("train.model",), gpu=True)
def train(work: Work, *, dataset: ArtifactRef, queries: ArtifactRef, seed: int) -> Facts:
    """The finetuned student, as files that open_clip loads."""
    spec = json.loads(work.store.file(queries, "queries.json").read_text())
    classes, chosen = spec["classes"], spec["descriptors"]
    target = Target(name="target", classes=tuple(classes), template=spec["template"])
    prompts = [[target.prompt(label, phrase) for label in range(len(classes))] for phrase in chosen]
    settings = work.settings.train
    clip = load_clip(settings.model, work.settings.compute.device)
    pixels, labels = read_training_set(work.store.folder(dataset), clip)
    tuned = finetune(clip, pixels, labels, prompts, settings, seed)
    export(tuned.student, classes, target.prompts(), prompts, work.scratch)
    (work.scratch / "losses.json").write_text(json.dumps(tuned.losses))
    return Facts({"images": len(pixels), "initial_share": tuned.initial_share, "last_loss": tuned.losses[-1]})


@stage("scores", settings=("evaluate.batch_size",), weights=("train.model",), gpu=True)
def evaluate(
    work: Work, *, models: list[ArtifactRef], names: list[str], queries: ArtifactRef, evaluation: ArtifactRef
) -> Facts:
    """Accuracy per domain of the student before (`zero_shot`) and after finetuning (`models` by `names`)."""
    spec = json.loads(work.store.file(queries, "queries.json").read_text())
    target = Target(name="target", classes=tuple(spec["classes"]), template=spec["template"])
    size = work.settings.evaluate.batch_size
    images, labels = read_evaluation(work.store.folder(evaluation))
    clip = load_clip(work.settings.train.model, work.settings.compute.device)
    prompts = [
        [target.prompt(i, phrase) for i in range(len(target.classes))] for phrase in spec["descriptors"]
    ]
    texts = {
        "single": clip.encode_texts(target.prompts()),
        "averaged": np.mean([clip.encode_texts(p) for p in prompts], axis=0),
    }
    arms = {"zero_shot": (clip, texts)}
    for name, model in zip(names, models, strict=True):
        folder = work.store.folder(model)
        arms[name] = (load_clip(f"local-dir:{folder}", work.settings.compute.device), load_classifier(folder))
    results: dict[str, dict[str, Score]] = {}
    for name, (network, classifier) in arms.items():
        pixels = {d: np.stack([network.pixels(image) for image in found]) for d, found in images.items()}
        features = {domain: network.encode_images(found, size) for domain, found in pixels.items()}
        results[name] = {way: score(features, labels, classifier[way]) for way in ("single", "averaged")}
    body = {name: {way: asdict(found) for way, found in ways.items()} for name, ways in results.items()}
    (work.scratch / "scores.json").write_text(json.dumps(body, indent=1))
    return Facts({name: ways["single"].mean for name, ways in results.items()})
