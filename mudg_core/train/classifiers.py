"""Finished classifiers in a store: find one by name, copy it out, and collect what its model card says."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core import __version__
from mudg_core.dataset.export import MARK, new_folder
from mudg_core.dataset.fetch_filter_refill import CHOSEN
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.dataset.warning import read_warnings
from mudg_core.errors import DataError
from mudg_core.settings import PRECISION, Json
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest
from mudg_core.target.queries import SPEC
from mudg_core.train.card import ARMS, WAYS, CardFacts, Origin, Verdict

STAGE = "classifier"
SCORES = "scores.json"
VERDICT = "verdict.json"
DRAWN = "corpus-shard"
CARD_SETTINGS = ("train.", "dataset.", "augment.")  # settings that a card lists


def target_of(manifest: Manifest) -> str:
    inputs: Any = manifest.recipe.settings.get("inputs", {})
    return str(inputs.get("target", "?"))


def copy_out(store: ArtifactStore, ref: ArtifactRef, out: Path, *, force: bool = False) -> Json:
    """All files of a classifier in a folder of the user's own, all of them or nothing; says what was written.
    `mudg.json` tells programs what the card tells people."""
    manifest = store.manifest(ref)
    description: Json = {
        "mudg": __version__,
        "classifier": f"{ref.stage}/{ref.key}",
        "digest": ref.digest,
        "created": manifest.circumstances.created,
        "target": target_of(manifest),
        **manifest.facts,
    }
    with new_folder(out, force=force) as folder:
        for name, file in store.files(ref).items():
            shutil.copyfile(file, folder / name)
        (folder / MARK).write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return description


@dataclass(frozen=True)
class MadeFrom:
    """The artifacts behind one model. Scores are one a seed, the model's own first."""

    model: ArtifactRef
    queries: ArtifactRef
    dataset: ArtifactRef
    index: ArtifactRef
    scores: Sequence[ArtifactRef] = ()
    verdict: ArtifactRef | None = None
    warnings: ArtifactRef | None = None

    def artifact_keys(self) -> dict[str, str]:
        """Whole keys, by stage."""
        named = [self.model, self.dataset, self.queries, self.index, *self.scores[:1]]
        named += [ref for ref in (self.verdict, self.warnings) if ref is not None]
        return {ref.stage: f"{ref.stage}/{ref.key}" for ref in named}


def card_facts(
    store: ArtifactStore, parents: MadeFrom, *, target: str, description: str, base: str, temperature: float
) -> CardFacts:
    """`base` is the name of the model that was finetuned, as the settings have it."""
    spec = json.loads(store.file(parents.queries, SPEC).read_text())
    model, dataset = store.manifest(parents.model), store.manifest(parents.dataset)
    corpus = store.manifest(parents.index)
    scores = [json.loads(store.file(ref, SCORES).read_text()) for ref in parents.scores]
    counts: Any = dataset.facts["per_label"]
    inputs: Any = model.recipe.settings["inputs"]
    return CardFacts(
        target=target,
        description=description,
        classes=tuple(spec["classes"]),
        template=spec["template"],
        temperature=temperature,
        base=public_name(base),
        base_digest=model.recipe.weights.get("train.model", "unknown"),
        seed=int(inputs["seed"]),
        images=(*counts, *[0] * (len(spec["classes"]) - len(counts))),
        origins=tuple(_origins(store, dataset)),
        corpus_rows=int(str(corpus.facts["rows"])),
        corpus_shards=len(_refs(corpus, "embeddings")),
        made_from=parents.artifact_keys(),
        settings=_settings([store.manifest(parents.queries), dataset, model]),
        scores=_scores(scores[0]) if scores else {},
        over_seeds=tuple(one["mudg"]["single"]["mean"] for one in scores),
        verdict=read_verdict(store, parents.verdict),
        warnings=_warnings(store, parents.warnings),
    )


def read_verdict(store: ArtifactStore, ref: ArtifactRef | None) -> Verdict | None:
    """The verdict of the gate, if it was asked for."""
    if ref is None:
        return None
    file = store.file(ref, VERDICT)
    try:
        body = json.loads(file.read_text())
        better = None if body["better"] is None else bool(body["better"])
        verdict = Verdict(float(body["alpha"]), better, tuple(map(str, body["reasons"])))
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(what=f"{ref} is no verdict of the gate", where=str(file)) from error
    if not 0 <= verdict.alpha <= 1:
        raise DataError(what=f"alpha is {verdict.alpha}, and not between 0 and 1", where=str(file))
    return verdict


def public_name(name: str) -> str:
    """A model's name for strangers: where it lies on somebody's disk is none of their business."""
    if name.startswith("local-dir:"):
        return "a local folder of open_clip"
    architecture, _, tag = name.partition("/")
    return f"{architecture} with weights from a local file" if tag.endswith(".safetensors") else name


def _origins(store: ArtifactStore, dataset: Manifest) -> Iterator[Origin]:
    """Which sources the chosen images came from. Only shards that gave some are opened."""
    shards, fetched = _refs(dataset, "shards"), dataset.recipe.parents["found"]
    assert isinstance(fetched, ArtifactRef)
    lines = pq.read_table(store.file(dataset.ref, PROVENANCE), columns=["row", "outcome"])
    rows = lines.filter(pc.equal(lines.column("outcome"), CHOSEN)).column("row")
    places = pq.read_table(store.file(fetched, "images.parquet"), columns=["row", "shard"])
    taken = places.filter(pc.is_in(places.column("row"), pa.array(rows.to_pylist(), pa.int64())))
    by_shard = Counter(taken.column("shard").to_pylist())
    images: Counter[tuple[str, str]] = Counter()
    used: Counter[tuple[str, str]] = Counter()
    for number, count in sorted(by_shard.items()):
        source = _source(store, shards[number])
        images[source] += count
        used[source] += 1
    for source, count in images.most_common():
        yield Origin(*source, shards=used[source], images=count)


def _source(store: ArtifactStore, shard: ArtifactRef) -> tuple[str, str]:
    """(kind, name) of where a shard came from; a downloaded one came from a list of links."""
    if shard.stage == DRAWN:
        return "demo", "the demo world"
    manifest = store.manifest(shard)
    if "url" not in manifest.facts:
        manifest = store.manifest(_refs(manifest, "shard")[0])
    return str(manifest.facts["kind"]), public_url(str(manifest.facts["url"]))


def public_url(url: str) -> str:
    """An address without what is private in it: folders of somebody's disk, names and passwords."""
    parts = urlsplit(url)
    if parts.scheme in ("", "file"):
        return f"a local folder ({parts.path.rstrip('/').rpartition('/')[2]})"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _refs(manifest: Manifest, role: str) -> tuple[ArtifactRef, ...]:
    refs = manifest.recipe.parents[role]
    return (refs,) if isinstance(refs, ArtifactRef) else refs


def _settings(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Of all stages together; the precision of each, as they differ in that."""
    settings: dict[str, Any] = {}
    for recipe in (manifest.recipe for manifest in manifests):
        settings |= {name: value for name, value in recipe.settings.items() if name.startswith(CARD_SETTINGS)}
        if PRECISION in recipe.settings:
            settings[f"{PRECISION} of {recipe.stage}"] = recipe.settings[PRECISION]
    return settings


def _scores(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {arm: {way: body[arm][way] for way in WAYS if way in body[arm]} for arm in ARMS if arm in body}


def _warnings(store: ArtifactStore, ref: ArtifactRef | None) -> tuple[str, ...]:
    return () if ref is None else tuple(item.message for item in read_warnings(store.folder(ref)))
