"""`mudg corpus …`: add, replace and remove sources, and show how far each has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mudg.cli.command import Output, command, group
from mudg.cli.output import console, count, table_of

if TYPE_CHECKING:
    from mudg_core.corpus.sources.registry import Added
    from mudg_core.settings import Json, Settings
    from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest

app = group("Add images to the pool, and see what it holds.")
NEXT = {
    "webdataset": "`mudg index build` embeds them",
    "folder": "`mudg index build` embeds them",
    "links": "`mudg index build` downloads and embeds them",
    "embeddings": "`mudg index build` checks and copies them",
}
EMPTY = "nothing was added yet: `mudg corpus add URL`"
DERIVED = ("dataset", "model", "classifier", "report")


@command(app, "add")
def corpus_add(
    url: Annotated[
        str, Argument(help="A path, file:///path or s3://bucket/prefix; also one .tar or .parquet.")
    ],
    settings: Settings,
    store: ArtifactStore,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what is there, and register nothing.")] = False,
    replace: Annotated[
        bool, Option("--replace", help="Register all of a source again, after its files have changed.")
    ] = False,
    yes: Annotated[
        bool, Option("--yes", help="With --replace: do it. Without --yes, only show the consequences.")
    ] = False,
) -> Output:
    """Register a source of images. Nothing is copied or embedded yet.

    A source is one of: WebDataset tars (as img2dataset writes them); parquet files of url and caption, which
    the next build downloads; embeddings in clip-retrieval's layout (`img_emb/ text_emb/ metadata/`); a folder
    of images, with captions in `.txt` files beside them. Adding a source again registers its new files.

    Example: `mudg corpus add s3://bucket/laion --set storage.endpoint_url=https://s3.example.org`
    """
    from rich.markup import escape

    from mudg_core.corpus.sources import registry

    store.check()
    per_shard, place = settings.corpus.rows_per_shard, escape(url)
    with console.status(f"looking at {place} …") as status:
        source = registry.inspect(
            url, store, per_shard, lambda n: status.update(f"looking at {place}: {n} parts …")
        )
    if replace:  # looked at first: a source that cannot be registered replaces nothing
        result = consequences(store, registry.registered_url(store, source.url))
        result["done"] = yes and not dry_run
        if result["done"]:
            added = registry.add(store, source, per_shard, replace=True)
            result |= {"new_shards": len(added.new), "new_rows_at_most": added.rows}
        return Output(result, _consequences_text(result, "replaced"))
    added = registry.Added(source) if dry_run else registry.add(store, source, per_shard)
    body = {
        "url": source.url,
        "kind": source.kind,
        "files": source.entries,
        "parts": len(source.parts),
        "rows_at_most": source.rows,
        "new_shards": len(added.new),
        "new_rows_at_most": added.rows,
        "known_parts": added.known,
        "gone": added.gone[:100],
    }
    return Output(body, _added_text(added, dry_run))


@command(app, "remove")
def corpus_remove(
    source: Annotated[str, Argument(help="As `mudg corpus status` shows it; its files may be gone.")],
    store: ArtifactStore,
    yes: Annotated[bool, Option("--yes", help="Do it. Without --yes, only show the consequences.")] = False,
) -> Output:
    """Remove a whole source from the pool, and show what that means for the index and for lineage.

    For single images, use `mudg takedown`. Example: `mudg corpus remove s3://bucket/laion --yes`
    """
    from mudg_core.corpus.sources import registry

    url = registry.registered_url(store, source)
    result = consequences(store, url) | {"done": yes}
    if yes:
        registry.remove(store, url)
    return Output(result, _consequences_text(result, "removed"))


@command(app, "status")
def corpus_status(settings: Settings, store: ArtifactStore) -> Output:
    """Show every source: shards, rows, dates, and which rows were refused and why.

    Example: `mudg corpus status --json`
    """
    from mudg_core.corpus.sources import registry
    from mudg_core.index.model_names import resolved_model

    shards = registry.refs(store)
    model = resolved_model(store, settings.encode.model)
    states = source_states(store, settings.replace({"encode": {"model": model}}), shards)
    result = {"shards": len(shards), "sources": [state.to_json() for state in states]}
    return Output(result, _status_text(states) if states else EMPTY)


def _added_text(added: Added, dry_run: bool) -> str:
    source = added.inspection
    lines = [
        f"{source.url}\n{source.kind}: {count(source.entries)} files, "
        f"{count(len(source.parts))} parts, {count(source.rows)} rows at most"
    ]
    if dry_run:
        lines.append("nothing was registered (--dry-run)")
    elif added.new:
        new = f"{len(added.new)} new shards with {count(added.rows)} rows at most"
        lines.append(f"{new}; {NEXT[source.kind]}")
    else:
        lines.append("nothing new: all of it was added before")
    if added.gone:
        lines.append(f"{len(added.gone)} files that were added before are gone: {', '.join(added.gone[:5])}")
    return "\n".join(lines)


def consequences(store: ArtifactStore, url: str) -> Json:
    """What a source has in the corpus and in the current index, and what was ever made with it."""
    from mudg_core.corpus.sources import registry
    from mudg_core.errors import MissingArtifactError
    from mudg_core.index.version import current_version
    from mudg_core.storage.browse import made_from

    shards = [ref for ref in registry.refs(store) if store.manifest(ref).facts["url"] == url]
    derived = made_from(store, shards)
    try:
        indexed = current_version(store).index.place in derived
    except MissingArtifactError:
        indexed = False
    counts = Counter(name.partition("/")[0] for name in derived)
    return {
        "source": url,
        "shards": len(shards),
        "rows_at_most": sum(_number(store.manifest(ref), "rows") for ref in shards),
        "indexed": indexed,
        "made_with_it": {stage: counts[stage] for stage in DERIVED if counts[stage]},
    }


def _consequences_text(result: Json, verb: str) -> str:
    derived = ", ".join(f"{number} {stage}" for stage, number in result["made_with_it"].items())
    index = "has its rows until the next `mudg index build`, which trains anew"
    lines = [
        f"{result['source']}: {result['shards']} shards, {count(result['rows_at_most'])} rows at most",
        f"index: the current one {index if result['indexed'] else 'has none of its rows'}",
        f"lineage: {derived or 'nothing'} made with it; these stay, and still name it",
        "row numbers are not used again, and files of the source are not touched",
        verb if result["done"] else f"nothing was {verb} yet: run again with --yes",
    ]
    return "\n".join(lines)


@dataclass
class SourceState:
    """One source: how many of its shards are where, and which rows were refused on the way."""

    kind: str
    url: str
    shards: int = 0
    rows: int = 0
    downloaded: int = 0
    images: int = 0
    embedded: int = 0
    usable: int = 0
    duplicates: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    added: str = ""
    embedded_at: str = ""

    def count(self, shard: Manifest, download: Manifest | None, embedding: Manifest | None) -> None:
        self.shards += 1
        self.rows += _number(shard, "rows")
        self.added = max(self.added, shard.circumstances.created)
        if download:
            self.downloaded += 1
            self.images += _number(download, "images")
            self._refuse(download)
        if embedding:
            self.embedded += 1
            self.usable += _number(embedding, "rows")
            self.duplicates += _number(embedding, "duplicates")
            self.embedded_at = max(self.embedded_at, embedding.circumstances.created)
            self._refuse(embedding)

    def _refuse(self, manifest: Manifest) -> None:
        refused = manifest.facts.get("refused")
        if isinstance(refused, dict):
            self.refused.update({reason: int(str(rows)) for reason, rows in refused.items()})

    def to_json(self) -> Json:
        return {**vars(self), "refused": dict(self.refused.most_common())}


def source_states(
    store: ArtifactStore, settings: Settings, shards: Iterable[ArtifactRef]
) -> list[SourceState]:
    """By what the store has: a run that was killed shows as far as it had come."""
    from mudg_core.corpus.sources import shard as registered
    from tasks.corpus import download_shard
    from tasks.embed import embed

    states: dict[str, SourceState] = {}
    for ref in shards:
        manifest = store.manifest(ref)
        kind, url = str(manifest.facts["kind"]), str(manifest.facts["url"])
        state = states.setdefault(url, SourceState(kind, url))
        ready: ArtifactRef | None = ref
        if kind == "links":
            ready = store.find(download_shard.recipe(settings, {"shard": ref}))
        embedding = store.find(embed.recipe(settings, {"shard": ready})) if ready else None
        download = store.manifest(ready) if ready and ready.stage != registered.STAGE else None
        state.count(manifest, download, store.manifest(embedding) if embedding else None)
    return list(states.values())


def _status_text(states: list[SourceState]) -> str:
    header = ["kind", "source", "shards", "embedded", "rows", "usable", "near copies", "refused"]
    header += ["added", "last"]
    lines = [
        (
            *(state.kind, state.url, state.shards, state.embedded, count(state.rows), count(state.usable)),
            *(count(state.duplicates), count(state.refused.total())),
            *(state.added[:16], state.embedded_at[:16] or "-"),
        )
        for state in states
    ]
    refused: Counter[str] = sum((state.refused for state in states), Counter())
    reasons = [table_of(refused.most_common(), ("refused because", "rows"))] if refused else []
    return "\n\n".join([table_of(lines, header), *reasons])


def _number(manifest: Manifest, name: str) -> int:
    return int(str(manifest.facts.get(name, 0)))
