"""Class names to queries, the images a target is evaluated on, and what prompts alone are worth."""

from __future__ import annotations

import json

import numpy as np

from mudg_core.evaluate.images import EvaluationSet, Source, write_evaluation
from mudg_core.report.charts.curves import prompt_study
from mudg_core.settings import AugmentSettings
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.prompts import FILES, METHODS, augmentations, chosen_pool, of_descriptors
from mudg_core.target.queries import Queries, read_queries, read_ranked, write_queries
from mudg_core.target.spec import Target
from tasks.policy import Work, stage

AUGMENT = (
    "augment.count",
    "augment.label_clusters",
    "augment.near_copy",
    "augment.pool",
    "augment.seed",
)


@stage("queries", algorithm=3, settings=("augment.method", *AUGMENT), weights=("encode.model",), gpu=True)
def augment(
    work: Work,
    *,
    classes: list[str],
    template: str,
    synonyms: dict[str, list[str]],
    pool: list[str],
    pool_digest: str,
    by_class: list[list[str]],
) -> Facts:
    """The prompts of a target's classes, and the features of its queries, label by label.

    `pool` lists the phrases of the user's own file; empty stands for the built-in pool. `by_class` has what
    the user's file says about each class, for the methods that need it.
    """
    settings = work.settings.augment
    clip = work.clip(work.settings.encode.model)
    target = Target.model_validate(
        {"name": "target", "classes": classes, "template": template, "synonyms": synonyms}
    )
    made = augmentations(target, settings, clip.encode_texts, pool, by_class)
    queries = Queries.of(target, made)
    write_queries(queries, made, work.scratch, clip.encode_texts)
    return Facts(
        {
            "method": made.method,
            "queries": len(queries.texts),
            "per_label": np.bincount(queries.labels, minlength=len(classes)).tolist(),
            "augmentations": len(queries.matrix),
            "pool": len(made.scored),
            "dim": clip.dim,
        }
    )


@stage("evaluation", algorithm=2, settings=("evaluate.demo_images_per_class",))
def collect_evaluation(
    work: Work, *, classes: list[str], synonyms: dict[str, list[str]], fingerprint: str
) -> Facts:
    """Labelled images of a target, by domain; only `evaluate` ever reads them.

    Where they lie is in the settings and not in the key: a folder that was moved is the same data.
    """
    settings = work.settings.evaluate
    images = Source(settings.source or "", classes, settings.demo_images, synonyms)
    counts = write_evaluation(images.read(), work.scratch)
    there = np.concatenate(list(EvaluationSet.open(work.scratch).labels.values()))
    empty = np.setdiff1d(np.arange(len(classes)), there)
    told = {"unknown": list(images.matching().unknown), "empty": [classes[label] for label in empty]}
    return Facts({"images": len(there), "domains": counts, **told})


@stage("prompts", algorithm=2, settings=(*AUGMENT, "evaluate.batch_size"), weights=("train.model",), gpu=True)
def study_prompts(
    work: Work,
    *,
    queries: ArtifactRef,
    evaluation: ArtifactRef,
    pool: list[str],
    by_class: dict[str, list[list[str]]],
) -> Facts:
    """Zero-shot accuracy of the student by prompts. `queries` are those of `adaptive`.

    `by_class` has what the user's files say about each class, by the method that says it.
    """
    from mudg_core.evaluate.classifier import image_features  # here, as it imports torch
    from mudg_core.evaluate.prompts import Examiner, study

    settings, clip = work.settings, work.clip(work.settings.train.model)
    folder = work.store.folder(queries)
    target, ranked = read_queries(folder).target, read_ranked(folder)
    images = EvaluationSet.open(work.store.folder(evaluation))
    features = image_features(clip, images, settings.evaluate.batch_size)
    examiner = Examiner(target, features, images.labels, clip.encode_texts)

    def by_method(method: str) -> AugmentSettings:
        return settings.replace({"augment": {"method": method}}).augment

    best = of_descriptors(target, "adaptive", ranked[: settings.augment.count])
    others = [
        augmentations(target, by_method(method), clip.encode_texts, pool, by_class.get(method, []))
        for method in METHODS
        if method != "adaptive" and (method not in FILES or method in by_class)
    ]
    found = study(examiner, [best, *others], ranked, chosen_pool(settings.augment, pool), settings.augment)
    (work.scratch / "prompts.json").write_text(json.dumps(found.to_json(), indent=1))
    (work.scratch / "prompts.svg").write_text(prompt_study(found))
    return Facts({item.method: item.mean for item in found.methods})
