"""What only a comparison needs: adapters without training, labelled images, and the table itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from mudg_core.dataset.training_set import read_training_set
from mudg_core.evaluate.baselines import (
    GAMMAS,
    Cache,
    choose_weights,
    default_weights,
    few_shot,
    write_few_shot,
)
from mudg_core.evaluate.comparison import (
    BACKBONES,
    COMPARISON,
    Comparison,
    backbone_of,
    overall,
    paper_figures,
    row_score,
)
from mudg_core.evaluate.images import EvaluationSet, Source
from mudg_core.evaluate.measures import ANSWERS, ByDomain, column_name, read_hits, score_of, write_answers
from mudg_core.evaluate.uncertainty import Float64
from mudg_core.report.page import render_comparison
from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.queries import read_queries
from mudg_core.target.spec import Target
from tasks.coarse import Refs
from tasks.policy import Work, stage

PAGE = "comparison.html"
ADAPTERS = {"tip_adapter": (0.0,), "tip_x": GAMMAS}


@stage(
    "cache-scores",
    algorithm=3,
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
    features: ArtifactRef,
) -> Facts:
    """Accuracy of Tip-Adapter and Tip-X on a training set, with weights chosen on held-out images by their
    pseudo-labels; without any, the default_weights weights."""
    from mudg_core.evaluate.classifier import read_features  # torch: not where nothing is computed

    clip, size = work.clip(work.settings.train.model), work.settings.evaluate.batch_size
    texts = clip.encode_texts(read_queries(work.store.folder(queries)).target.prompts())

    def encoded(ref: ArtifactRef) -> tuple[Any, Any]:
        pixels, labels = read_training_set(work.store.folder(ref), clip)
        return clip.encode_images(pixels, size), labels

    cache = Cache.of(*encoded(dataset), texts, work.settings.train.temperature)
    held = encoded(held_out) if work.store.manifest(held_out).facts["images"] else None
    images = EvaluationSet.open(work.store.folder(evaluation))
    known = read_features(work.store.folder(features), images.labels)
    body, facts, predicted = {}, {}, dict[str, ByDomain]()
    for name, gammas in ADAPTERS.items():
        weights = choose_weights(cache, *held, gammas=gammas) if held else default_weights(gammas)
        answers = {domain: cache.predict(own, weights) for domain, own in known.items()}
        score = score_of({d: (own, images.labels[d]) for d, own in answers.items()}, len(texts))
        body[name] = {"single": asdict(score), "weights": asdict(weights)}
        facts[name] = score.mean
        predicted[column_name(name, "single")] = answers
    write_answers(work.scratch, images.labels, predicted)
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
    source = Source(settings.source or "", classes, settings.demo_images, synonyms)
    labels = write_few_shot(few_shot(source, shots, seed), work.scratch)
    per_label = np.bincount(labels, minlength=len(classes)).tolist()
    return Facts({"images": len(labels), "per_label": per_label})


@stage("comparison", algorithm=3)
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
    lines, hits = [], []
    for row in rows:
        refs = scores[row["first"] : row["first"] + row["count"]]
        bodies = [json.loads(work.store.file(ref, "scores.json").read_text())[row["arm"]] for ref in refs]
        figures = {name: known[row["paper"]].value for name, known in paper.items() if row["paper"] in known}
        meta = {name: row[name] for name in ("name", "group", "about")}
        lines.append(row_score(meta, bodies, row["way"], figures))
        hits.append(_hits(work, refs, column_name(row["arm"], row["way"])))
    table = Comparison(spec.name, spec.seeds, tuple(lines), left_out).with_estimates(hits)
    (work.scratch / COMPARISON).write_text(json.dumps(table.to_json(), indent=1))
    return Facts({row.name: round(row.mean, 2) for row in table.rows})


def _hits(work: Work, scores: Refs, column: str) -> dict[str, Float64]:
    """Domain -> (seeds, images), in percent."""
    by_seed = [read_hits(work.store.file(ref, ANSWERS), column) for ref in scores]
    return {domain: np.stack([100.0 * hits[domain] for hits in by_seed]) for domain in by_seed[0]}


@stage("comparison-page", algorithm=3)
def draw_comparison(work: Work, *, title: str, comparisons: Refs) -> Facts:
    """One page, and one JSON file, over all targets."""
    bodies = [json.loads(work.store.file(ref, COMPARISON).read_text()) for ref in comparisons]
    made = [Comparison.from_json(body) for body in bodies]
    shown = [overall(made), *made] if len(made) > 1 else made
    (work.scratch / PAGE).write_text(render_comparison(title, shown), encoding="utf-8")
    (work.scratch / COMPARISON).write_text(json.dumps([one.to_json() for one in shown], indent=1))
    return Facts({"targets": [one.target for one in made]})
