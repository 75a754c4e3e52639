"""What only a comparison needs: adapters without training, labelled images, and the table itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from mudg_core.dataset.training_set import read_training_set
from mudg_core.evaluate.accuracy import score_of
from mudg_core.evaluate.cache_model import GAMMAS, Cache, choose, usual
from mudg_core.evaluate.comparison import COMPARISON, Comparison, overall, row_score
from mudg_core.evaluate.few_shot import few_shot, write_shots
from mudg_core.evaluate.images import EvaluationSet, Source
from mudg_core.evaluate.paper import BACKBONES, backbone_of, paper_figures
from mudg_core.report.comparison import render_comparison
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.queries import read_queries
from mudg_core.target.spec import Target
from tasks.coarse import Refs
from tasks.policy import Work, stage

PAGE = "comparison.html"
ADAPTERS = {"tip_adapter": (0.0,), "tip_x": GAMMAS}


@stage(
    "cache-scores",
    algorithm=2,
    settings=("train.temperature", "evaluate.batch_size"),
    weights=("train.model",),
    gpu=True,
)
def score_cache(
    work: Work,
    *,
    dataset: ArtifactRef,
    held_out: ArtifactRef,
    queries: ArtifactRef,
    evaluation: ArtifactRef,
) -> Facts:
    """Accuracy of Tip-Adapter and Tip-X on a training set, with weights chosen on held-out images by their
    pseudo-labels; without any, the usual weights."""
    from mudg_core.evaluate.classifier import image_features  # torch: not where nothing is computed

    clip, size = work.clip(work.settings.train.model), work.settings.evaluate.batch_size
    texts = clip.encode_texts(read_queries(work.store.folder(queries)).target.prompts())

    def encoded(ref: ArtifactRef) -> tuple[Any, Any]:
        pixels, labels = read_training_set(work.store.folder(ref), clip)
        return clip.encode_images(pixels, size), labels

    cache = Cache.of(*encoded(dataset), texts, work.settings.train.temperature)
    held = encoded(held_out) if work.store.manifest(held_out).facts["images"] else None
    images = EvaluationSet.open(work.store.folder(evaluation))
    features = image_features(clip, images, size)
    body, facts = {}, {}
    for name, gammas in ADAPTERS.items():
        weights = choose(cache, *held, gammas=gammas) if held else usual(gammas)
        given = {
            domain: (cache.predict(found, weights), images.labels[domain])
            for domain, found in features.items()
        }
        found = score_of(given, len(texts))
        body[name] = {"single": asdict(found), "weights": asdict(weights)}
        facts[name] = found.mean
    (work.scratch / "scores.json").write_text(json.dumps(body, indent=1))
    return Facts(facts)


@stage("shots", settings=("evaluate.demo_images_per_class",))
def draw_shots(
    work: Work,
    *,
    classes: list[str],
    synonyms: dict[str, list[str]],
    fingerprint: str,
    shots: int,
    seed: int,
) -> Facts:
    """Labelled images that no evaluation sees, as a training set. Where they lie is in the settings."""
    settings = work.settings.evaluate
    source = Source(settings.source or "", classes, settings.demo_images_per_class, synonyms)
    labels = write_shots(few_shot(source, shots, seed), work.scratch)
    per_label = np.bincount(labels, minlength=len(classes)).tolist()
    return Facts({"images": len(labels), "per_label": per_label})


@stage("comparison")
def tabulate(
    work: Work,
    *,
    target: dict[str, Any],
    model: str,
    rows: list[dict[str, Any]],
    left_out: dict[str, str],
    scores: Refs,
) -> Facts:
    """All rows of one target. Each says which of the scores are its own (`first`, `count`), which arm it is
    in them and by which prompts it is judged; `model` is the student's name, for the paper's column."""
    spec = Target.model_validate(target)
    own = backbone_of(model)
    paper = {name: paper_figures(spec, name) for name in ([own] if own else BACKBONES)}
    found = []
    for row in rows:
        refs = scores[row["first"] : row["first"] + row["count"]]
        read = [json.loads(work.store.file(ref, "scores.json").read_text())[row["arm"]] for ref in refs]
        figures = {name: known[row["paper"]].value for name, known in paper.items() if row["paper"] in known}
        meta = {name: row[name] for name in ("name", "group", "about")}
        found.append(row_score(meta, read, row["way"], figures))
    made = Comparison(spec.name, spec.seeds, tuple(found), left_out)
    (work.scratch / COMPARISON).write_text(json.dumps(made.to_json(), indent=1))
    return Facts({row.name: round(row.mean, 2) for row in made.rows})


@stage("comparison-page")
def draw_comparison(work: Work, *, title: str, comparisons: Refs) -> Facts:
    """One page, and one JSON file, over all targets."""
    read = [json.loads(work.store.file(ref, COMPARISON).read_text()) for ref in comparisons]
    made = [Comparison.from_json(body) for body in read]
    shown = [overall(made), *made] if len(made) > 1 else made
    (work.scratch / PAGE).write_text(render_comparison(title, shown), encoding="utf-8")
    (work.scratch / COMPARISON).write_text(json.dumps([one.to_json() for one in shown], indent=1))
    return Facts({"targets": [one.target for one in made]})
