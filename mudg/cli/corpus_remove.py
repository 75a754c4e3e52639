"""`mudg corpus remove` and `mudg corpus add --replace`: a source leaves, once it was said what follows."""

from __future__ import annotations

from collections import Counter

from mudg.cli import units
from mudg.cli.output import show
from mudg_core.corpus.sources import registry
from mudg_core.errors import MissingArtifactError
from mudg_core.index.version import current_version
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.browse import made_from

MADE = ("dataset", "model", "classifier", "report")


def run_remove(source: str, yes: bool, as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    url = registry.registered_url(store, source)
    result = consequences(store, url) | {"done": yes}
    if yes:
        registry.remove(store, url)
    show(result, _text(result, "removed"), as_json)


def run_replace(source: str, yes: bool, as_json: bool, settings: Settings) -> None:
    """Looked at first: a source that cannot be registered replaces nothing."""
    store = ArtifactStore(settings.storage)
    store.check()
    per_shard = settings.corpus.rows_per_shard
    inspection = registry.inspect(source, store, per_shard)
    result = consequences(store, registry.registered_url(store, inspection.url)) | {"done": yes}
    if yes:
        added = registry.add(store, inspection, per_shard, replace=True)
        result |= {"new_shards": len(added.new), "new_rows_at_most": added.rows}
    show(result, _text(result, "replaced"), as_json)


def consequences(store: ArtifactStore, url: str) -> Json:
    """What a source has in the corpus and in the current index, and what was ever made with it."""
    shards = [ref for ref in registry.refs(store) if store.manifest(ref).facts["url"] == url]
    rows = sum(int(str(store.manifest(ref).facts["rows"])) for ref in shards)
    made = made_from(store, shards)
    counts = Counter(name.partition("/")[0] for name in made)
    return {
        "source": url,
        "shards": len(shards),
        "rows_at_most": rows,
        "indexed": _is_indexed(store, made),
        "made_with_it": {stage: counts[stage] for stage in MADE if counts[stage]},
    }


def _is_indexed(store: ArtifactStore, made: set[str]) -> bool:
    try:
        return current_version(store).index.place in made
    except MissingArtifactError:
        return False


def _text(result: Json, verb: str) -> str:
    lines = [
        f"{result['source']}: {result['shards']} shards, {units.count(result['rows_at_most'])} rows at most",
        "index: the current one has its rows until the next `mudg index build`, which trains anew"
        if result["indexed"]
        else "index: the current one has none of its rows",
    ]
    made = ", ".join(f"{count} {stage}" for stage, count in result["made_with_it"].items())
    lines.append(f"lineage: {made or 'nothing'} made with it; these stay, and still name it")
    lines.append("row numbers are not given out again, and files of the source are not touched")
    lines.append(verb if result["done"] else f"nothing was {verb} yet: run again with --yes")
    return "\n".join(lines)
