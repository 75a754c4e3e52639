"""`mudg corpus add` and `mudg corpus status`: what the corpus is made of, and how far it has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.markup import escape

from mudg.cli import units
from mudg.cli.output import console, show, table_of
from mudg_core.corpus.sources import registry
from mudg_core.corpus.sources import shard as registered
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest
from tasks.corpus import download_shard
from tasks.embed import embed

NEXT = {
    "webdataset": "`mudg index build` embeds them",
    "folder": "`mudg index build` embeds them",
    "links": "`mudg index build` downloads and embeds them",
    "embeddings": "`mudg index build` checks and takes them over",
}


def run_add(url: str, dry: bool, as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    store.check()
    per_shard = settings.corpus.rows_per_shard
    place = escape(url)
    with console.status(f"looking at {place} …") as status:
        found = registry.inspect(
            url, store, per_shard, lambda n: status.update(f"looking at {place}: {n} parts …")
        )
    added = registry.Added(found) if dry else registry.add(store, found, per_shard)
    result: Json = {
        "url": found.url,
        "kind": found.kind,
        "files": found.entries,
        "parts": len(found.parts),
        "rows_at_most": found.rows,
        "new_shards": len(added.new),
        "new_rows_at_most": added.rows,
        "known_parts": added.known,
        "gone": added.gone[:100],
    }
    show(result, _added_text(added, dry), as_json)


def _added_text(added: registry.Added, dry: bool) -> str:
    found = added.inspection
    lines = [
        f"{found.url}\n{found.kind}: {units.count(found.entries)} files, "
        f"{units.count(len(found.parts))} parts, {units.count(found.rows)} rows at most"
    ]
    if dry:
        lines.append("nothing was registered (--dry-run)")
    elif added.new:
        told = f"{len(added.new)} new shards with {units.count(added.rows)} rows at most"
        lines.append(f"{told}; {NEXT[found.kind]}")
    else:
        lines.append("nothing new: all of it was added before")
    if added.gone:
        lines.append(f"{len(added.gone)} files that were added before are gone: {', '.join(added.gone[:5])}")
    return "\n".join(lines)


@dataclass
class SourceState:
    """One source: how many of its shards are where, and what was refused on the way."""

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
            self.refused.update({reason: int(str(count)) for reason, count in refused.items()})

    def to_json(self) -> Json:
        return {**vars(self), "refused": dict(self.refused.most_common())}


def run_status(as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    members = registry.refs(store)
    states = list(source_states(store, settings, members))
    result: Json = {"shards": len(members), "sources": [state.to_json() for state in states]}
    show(result, _status_text(states) if states else EMPTY, as_json)


EMPTY = "nothing was added yet: `mudg corpus add URL`"


def source_states(
    store: ArtifactStore, settings: Settings, members: Iterable[ArtifactRef]
) -> Sequence[SourceState]:
    """By what the store has: a run that was killed shows as far as it had come."""
    states: dict[str, SourceState] = {}
    for ref in members:
        manifest = store.manifest(ref)
        kind, url = str(manifest.facts["kind"]), str(manifest.facts["url"])
        state = states.setdefault(url, SourceState(kind, url))
        ready: ArtifactRef | None = ref
        if kind == "links":
            ready = store.find(download_shard.recipe(settings, {"shard": ref}))
        made = store.find(embed.recipe(settings, {"shard": ready})) if ready else None
        download = store.manifest(ready) if ready and ready.stage != registered.STAGE else None
        state.count(manifest, download, store.manifest(made) if made else None)
    return list(states.values())


def _status_text(states: Sequence[SourceState]) -> str:
    header = (
        "kind",
        "source",
        "shards",
        "embedded",
        "rows",
        "usable",
        "near copies",
        "refused",
        "added",
        "last",
    )
    lines = [
        (
            state.kind,
            state.url,
            state.shards,
            state.embedded,
            units.count(state.rows),
            units.count(state.usable),
            units.count(state.duplicates),
            units.count(state.refused.total()),
            state.added[:16],
            state.embedded_at[:16] or "-",
        )
        for state in states
    ]
    text = table_of(lines, header)
    refused: Counter[str] = sum((state.refused for state in states), Counter())
    if refused:
        text += "\n\n" + table_of(refused.most_common(), ("refused because", "rows"))
    return text


def _number(manifest: Manifest, name: str) -> int:
    value: Any = manifest.facts.get(name, 0)
    return int(str(value))
