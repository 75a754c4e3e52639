"""Class names to queries, and the images a target is evaluated on."""

from __future__ import annotations

from mudg_core.evaluate.images import Source, write_evaluation
from mudg_core.storage import Facts
from mudg_core.target import descriptors
from mudg_core.target.augment import Scored, random_choice, score
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from tasks.policy import Work, stage


@stage(
    "queries",
    settings=("augment.method", "augment.count", "augment.label_clusters", "augment.seed"),
    weights=("encode.model",),
)
def augment(work: Work, *, classes: list[str], template: str, pool: list[str], pool_digest: str) -> Facts:
    """The descriptors that suit a target, and the features of its queries, label by label.

    `pool` lists the phrases of the user's own file; empty stands for the built-in pool.
    """
    settings = work.settings.augment
    clip = work.clip(work.settings.encode.model)
    target = Target(name="target", classes=tuple(classes), template=template)
    phrases = pool or descriptors.built_in()
    scored: list[Scored] = []
    chosen: list[str | None] = [None]
    if settings.method == "random":
        chosen = list(random_choice(phrases, settings.count, settings.seed))
    elif settings.method == "adaptive":
        clusters = {"label_clusters": settings.label_clusters, "seed": settings.seed}
        scored, _ = score(target, phrases, clip.encode_texts, **clusters)
        chosen = [item.descriptor for item in scored[: settings.count]]
    queries = Queries(target, tuple(chosen))
    queries.write(work.scratch, scored, clip.encode_texts)
    count = len(chosen) * len(classes)
    return Facts({"queries": count, "pool": len(phrases), "per_label": len(chosen), "dim": clip.dim})


@stage("evaluation", settings=("evaluate.demo_images_per_class",))
def collect_evaluation(work: Work, *, classes: list[str], fingerprint: str) -> Facts:
    """Labelled images of a target, by domain; only `evaluate` ever reads them.

    Where they lie is in the settings and not in the key: a folder that was moved is the same data.
    """
    settings = work.settings.evaluate
    images = Source(settings.source or "", classes, settings.demo_images_per_class)
    counts = write_evaluation(images.read(), work.scratch)
    return Facts({"images": sum(counts.values()), "domains": counts})
