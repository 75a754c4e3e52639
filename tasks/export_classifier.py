"""A finetuned model to what its user gets: weights at the gate's alpha, the classifier, and a model card."""

from __future__ import annotations

from mudg_core.storage import ArtifactRef, Facts
from mudg_core.target.queries import read_queries
from mudg_core.train.card import CARD_FILE
from mudg_core.train.classifiers import STAGE, MadeFrom, card_facts
from tasks.policy import Work, stage


@stage(STAGE, settings=("train.temperature",), weights=("train.model",), gpu=True)
def export_classifier(
    work: Work,
    *,
    target: str,
    description: str,
    model: ArtifactRef,
    queries: ArtifactRef,
    dataset: ArtifactRef,
    index: ArtifactRef,
    scores: list[ArtifactRef] | None = None,
    verdict: ArtifactRef | None = None,
    warnings: ArtifactRef | None = None,
) -> Facts:
    """The folder that `mudg model export` copies out. `scores` has the model's own first, then other seeds'.

    The card says by which name the base model was asked for, and the key only which weights it has: so the
    card stays out of the digest.
    """
    from mudg_core.train import export
    from mudg_core.train.export import part_way

    settings = work.settings
    made = MadeFrom(model, queries, dataset, index, scores or (), verdict, warnings)
    facts = card_facts(
        work.store,
        made,
        target=target,
        description=description,
        base=settings.train.model,
        temperature=settings.train.temperature,
    )
    student = part_way(
        lambda: work.clip(settings.train.model),
        work.store.folder(model),
        facts.alpha,
        settings.compute.device,
    )
    export.export_with_card(student, read_queries(work.store.folder(queries)), facts, work.scratch)
    told = {"classes": len(facts.classes), "images": sum(facts.images), "alpha": facts.alpha}
    return Facts(told | {"base_digest": facts.base_digest}, volatile=frozenset({CARD_FILE}))
