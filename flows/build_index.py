"""Corpus in, a searchable index out: the upper half of the diagram in docs/architecture.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from flows.takedowns import already_removed, without
from mudg_core.corpus.sources import registry
from mudg_core.errors import ConflictError, DataError, InputError, MissingArtifactError
from mudg_core.index.model_names import ask_for_model, remember_model
from mudg_core.index.recall import Point
from mudg_core.index.variants import CENTROIDS, VARIANTS
from mudg_core.index.version import (
    ATTEMPTS,
    CURRENT,
    IndexVersion,
    current_version,
    gate,
    is_withdrawn,
    load_version,
    promote_after,
)
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, Pointer
from tasks import coarse as level
from tasks import index as tasks
from tasks.corpus import download_shard, draw_shard
from tasks.embed import embed, screen
from tasks.flow import dated, flow
from tasks.run import Run, StageRecord
from tasks.takedowns import takedown_rows

Make = Callable[[IndexVersion | None], ArtifactRef]  # a version, in view of the current one


@dataclass(frozen=True)
class IndexBuild:
    """An index version, its recall, and what this run did for it. `note`: why it did not become current."""

    version: IndexVersion
    recall: ArtifactRef
    records: list[StageRecord]
    note: str = ""


@flow(
    name="build-index",
    description="Embeds new corpus shards, populates the index, measures its recall and promotes it.",
    run_name=lambda settings, retrain=False, removed=(): dated("build-index"),
)
def build_index(settings: Settings, retrain: bool = False, removed: Sequence[int] = ()) -> IndexBuild:
    """corpus shards → embeddings → pairs → centroids → index version → recall → current; with rows to be
    removed: current version → version without them → recall → current"""
    run = Run(settings)
    if settings.corpus.source == "added" and not removed and run.store.pointer(registry.POINTER):
        ask_for_model(run.store, settings.encode.model)
    make = partial(without, run, removed) if removed else whole(run, retrain)
    for attempt in range(ATTEMPTS):
        seen = run.store.pointer(CURRENT)
        index = make(_version(run, seen))
        recall = tasks.measure_recall(run, index=index)
        note = "" if removed else withdrawn(run, index)  # whoever removes rows has asked for this version
        if note:
            break
        check(run, index, Point.from_json(run.store.manifest(recall).facts["configured"]))  # type: ignore[arg-type]
        try:
            promote_after(run.store, index, seen)
            break
        except ConflictError:
            if attempt == ATTEMPTS - 1:
                raise
    if not removed:
        remember_model(run.store, run.settings.encode.model)
    return IndexBuild(load_version(run.store, index), recall, run.records, note)


def whole(run: Run, retrain: bool) -> Make:
    """The corpus as it is now, by the settings of this run. What the current version leaves out is asked for
    again whenever that has changed; all the rest is made once."""
    embeddings = embed_corpus(run, corpus_shards(run))
    training = training_shards(run, embeddings, retrain)
    learned = train(run, embeddings, training)

    def make(current: IndexVersion | None) -> ArtifactRef:
        gone = {*already_removed(run, current, embeddings), *takedown_rows(run, embeddings)}
        return populate(run, embeddings, training, learned, sorted(gone))

    return make


def other_version(run: Run, like: IndexVersion) -> IndexVersion:
    """The images of a version, indexed by the settings of this run. For comparisons: it is not promoted."""
    embeddings = list(like.embeddings)
    learned = train(run, embeddings, like.training)
    removed = tasks.removed_from(run.store, like.index)
    return load_version(run.store, populate(run, embeddings, like.training, learned, removed))


def corpus_shards(run: Run) -> list[ArtifactRef]:
    """What was added to the corpus, lists of links downloaded first; or the demo world, for whoever asks for
    it: a store that has lost its corpus must not become an index of drawings."""
    if run.settings.corpus.source == "demo":
        jobs = [draw_shard.job(first_row=first, rows=rows) for first, rows in plan_shards(run.settings)]
        return draw_shard.map(run, jobs, per_task=run.shards_per_task(len(jobs)))
    added = list(registry.refs(run.store))
    if not added:
        raise InputError(
            what="the corpus is empty",
            where=run.store.url,
            fix="add images: `mudg corpus add URL`; to try mudg without any: `mudg demo`",
        )
    links = [ref for ref in added if run.store.manifest(ref).facts["kind"] == "links"]
    downloaded = download_shard.map(run, [download_shard.job(shard=ref) for ref in links]) if links else []
    ready = dict(zip(links, downloaded, strict=True))
    return [ready.get(ref, ref) for ref in added]


def embed_corpus(run: Run, shards: list[ArtifactRef]) -> list[ArtifactRef]:
    """Embeddings of all shards that have any row to offer; screened, if that is asked for."""
    corpus, batch = run.settings.corpus, run.shards_per_task(len(shards))
    found = embed.map(run, [embed.job(shard=shard) for shard in shards], per_task=batch)
    if corpus.dedup or corpus.min_cosine is not None:
        pairs = zip(shards, found, strict=True)
        found = screen.map(run, [screen.job(shard=s, embedding=e) for s, e in pairs], per_task=batch)
    kept = [ref for ref in found if _rows(run, [ref])]
    if not kept:
        raise DataError(
            what=f"none of {len(shards)} shards has a usable sample",
            where=run.store.url,
            fix="`mudg corpus status` says what was refused and why",
        )
    return kept


@dataclass(frozen=True)
class Learned:
    """What was trained, and on which of it the index will stand."""

    variant: str
    samples: ArtifactRef
    neighbors: list[ArtifactRef]
    pairs: ArtifactRef
    centroids: ArtifactRef
    cells: list[ArtifactRef]  # of the shards that it was trained on
    coarse: ArtifactRef
    choice: ArtifactRef | None


def train(run: Run, embeddings: list[ArtifactRef], shards: int) -> Learned:
    """Pairs, every variant that is asked for, and the choice between them. Trains on the first `shards`, but
    looks for neighbours in all: the measuring queries need them, and so does spilling."""
    samples = level.draw_samples(run, embeddings=embeddings[:shards])
    neighbors = find_neighbors(run, samples, embeddings, shards)
    pairs = level.make_training_pairs(
        run, samples=samples, neighbors=neighbors[:shards], embeddings=embeddings[:shards], texts=1.0
    )
    wanted = VARIANTS if run.settings.index.variant == "auto" else (run.settings.index.variant,)
    centroids = train_centroids(run, wanted, samples, pairs)
    cells = {name: assign(run, ref, embeddings[:shards]) for name, ref in centroids.items()}
    coarse = dict(centroids) | train_routers(run, wanted, samples, pairs, centroids, cells)
    chosen, choice = wanted[0], None
    if len(wanted) > 1:
        some = plan_parts(run, embeddings[:shards], run.settings.index.choice_rows)[0]
        choice = level.choose(
            run,
            variants=list(wanted),
            coarse=[coarse[name] for name in wanted],
            samples=samples,
            neighbors=neighbors[some],
            cells_kmeans=cells["kmeans"][some],
            cells_paired=cells["paired"][some],
            cells_centred=cells["centred"][some],
            cells_routed=cells["centred"][some],
            cells_spilled=cells["centred"][some],
        )
        chosen = str(run.store.manifest(choice).facts["variant"])
    own = centroids[base(chosen)], cells[base(chosen)]
    return Learned(chosen, samples, neighbors, pairs, *own, coarse[chosen], choice)


def find_neighbors(
    run: Run, samples: ArtifactRef, embeddings: list[ArtifactRef], shards: int
) -> list[ArtifactRef]:
    """Nearest images of all samples in each shard: exactly, or most of them through a bootstrapped index."""
    settings, batch = run.settings.index, run.shards_per_task(len(embeddings))
    share = settings.bootstrap_texts if settings.pairs == "bootstrap" else 1.0
    jobs = [level.find_neighbors.job(samples=samples, embedding=ref, texts=share) for ref in embeddings]
    exact = level.find_neighbors.map(run, jobs, per_task=batch)
    if share == 1.0:
        return exact
    pairs = level.make_training_pairs(
        run, samples=samples, neighbors=exact[:shards], embeddings=embeddings[:shards], texts=share
    )
    guide = level.train_centroids(run, variant="centred", samples=samples, pairs=pairs)
    rest = [
        level.complete_neighbors.job(samples=samples, embedding=ref, exact=few, guide=guide)
        for ref, few in zip(embeddings, exact, strict=True)
    ]
    return level.complete_neighbors.map(run, rest, per_task=batch)


def base(variant: str) -> str:
    """Whose centroids a variant has."""
    return variant if variant in CENTROIDS else "centred"


def train_centroids(
    run: Run, wanted: Sequence[str], samples: ArtifactRef, pairs: ArtifactRef
) -> dict[str, ArtifactRef]:
    names = sorted({base(name) for name in wanted}, key=CENTROIDS.index)
    jobs = [level.train_centroids.job(variant=name, samples=samples, pairs=pairs) for name in names]
    return dict(zip(names, level.train_centroids.map(run, jobs), strict=True))


def train_routers(
    run: Run,
    wanted: Sequence[str],
    samples: ArtifactRef,
    pairs: ArtifactRef,
    centroids: dict[str, ArtifactRef],
    cells: dict[str, list[ArtifactRef]],
) -> dict[str, ArtifactRef]:
    names = [name for name in wanted if name not in CENTROIDS]
    jobs = [
        level.train_router.job(
            centroids=centroids["centred"],
            samples=samples,
            pairs=pairs,
            cells=cells["centred"],
            spilled=name == "spilled",
        )
        for name in names
    ]
    return dict(zip(names, level.train_router.map(run, jobs), strict=True))


def assign(run: Run, centroids: ArtifactRef, embeddings: list[ArtifactRef]) -> list[ArtifactRef]:
    if not embeddings:
        return []
    jobs = [level.assign_cells.job(centroids=centroids, embedding=ref) for ref in embeddings]
    return level.assign_cells.map(run, jobs, per_task=run.shards_per_task(len(jobs)))


def populate(
    run: Run, embeddings: list[ArtifactRef], training: int, learned: Learned, removed: list[int]
) -> ArtifactRef:
    """All parts, and the version that names them. Only parts with new shards or removed rows are made."""
    cells = learned.cells + assign(run, learned.centroids, embeddings[training:])
    code = tasks.train_code(run, pairs=learned.pairs)
    spilled = learned.variant == "spilled"
    jobs = [
        tasks.populate.job(
            code=code,
            embeddings=embeddings[group],
            cells=cells[group],
            removed=tasks.rows_among(run.store, cells[group], removed),
            router=learned.coarse if spilled else None,
            pairs=learned.pairs if spilled else None,
            neighbors=learned.neighbors[group] if spilled else None,
        )
        for group in plan_parts(run, embeddings, run.settings.index.rows_per_part)
    ]
    parts = tasks.populate.map(run, jobs)
    return tasks.assemble(
        run,
        variant=learned.variant,
        coarse=learned.coarse,
        centroids=learned.centroids,
        pairs=learned.pairs,
        code=code,
        parts=parts,
        embeddings=embeddings,
        cells=cells,
        samples=learned.samples,
        neighbors=learned.neighbors,
        training=training,
        removed=removed,
        choice=learned.choice,
    )


def check(run: Run, index: ArtifactRef, point: Point) -> None:
    """The gate: recall of held-out captions at the configured cost."""
    gate(point.recall_at_1, run.settings.index.required_recall, cost=point.cost(), index=index)


def withdrawn(run: Run, index: ArtifactRef) -> str:
    """Why a build leaves the current version as it is: somebody went back from the one that it has made, and
    a schedule must not undo that. Empty if nobody has."""
    if not is_withdrawn(run.store, index):
        return ""
    return (
        f"{index} was rolled back from, so it was not promoted again: the current version stays. "
        f"`mudg index promote {index}` promotes it all the same"
    )


def training_shards(run: Run, embeddings: list[ArtifactRef], retrain: bool) -> int:
    """How many shards, from the first, the index is trained on. It stays at those of the current version
    while the corpus only grows, and not too much: then a build computes nothing but what is new."""
    settings = run.settings.index
    if settings.training_shards:
        return min(settings.training_shards, len(embeddings))
    try:
        current = current_version(run.store)
    except MissingArtifactError:
        return len(embeddings)
    trained = current.embeddings[: current.training]
    same = trained == tuple(embeddings[: current.training])
    grown = _rows(run, embeddings) > settings.retrain_growth * _rows(run, trained)
    return len(embeddings) if retrain or not same or grown else current.training


def _version(run: Run, pointer: Pointer | None) -> IndexVersion | None:
    """The version that a pointer named; None if it is not there, or not any more."""
    try:
        return load_version(run.store, pointer.ref) if pointer else None
    except MissingArtifactError:
        return None


def plan_parts(run: Run, embeddings: list[ArtifactRef], most: int) -> list[slice]:
    """Shards in order, about `most` rows together; only the last group changes when shards are added."""
    parts, first, rows = [], 0, 0
    for number, ref in enumerate(embeddings):
        rows += _rows(run, [ref])
        if rows >= most or number == len(embeddings) - 1:
            parts.append(slice(first, number + 1))
            first, rows = number + 1, 0
    return parts


def plan_shards(settings: Settings) -> list[tuple[int, int]]:
    """First row and number of rows of each corpus shard."""
    corpus = settings.corpus
    return [
        (first, min(corpus.rows_per_shard, corpus.rows - first))
        for first in range(0, corpus.rows, corpus.rows_per_shard)
    ]


def _rows(run: Run, embeddings: Sequence[ArtifactRef]) -> int:
    return sum(int(str(run.store.manifest(ref).facts["rows"])) for ref in embeddings)
