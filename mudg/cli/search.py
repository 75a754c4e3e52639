"""`mudg search`: imports neither Prefect nor Dask, and torch only once all else was checked."""

from __future__ import annotations

from pathlib import Path

from mudg.cli.output import settings_from, show, table_of
from mudg.search import search
from mudg_core.index.version import current_version
from mudg_core.storage import ArtifactStore


def run_search(
    text: str,
    neighbors: int,
    probes: int | None,
    save: Path | None,
    as_json: bool,
    file: Path | None,
    changes: list[str] | None,
) -> None:
    settings = settings_from(file, changes)
    store = ArtifactStore(settings.storage)
    hits = search(store, current_version(store), settings, text, neighbors, probes)
    if save is not None:
        hits.save(save)
    lines = [(i, f"{hit.cosine:.3f}", hit.caption[:60], hit.url) for i, hit in enumerate(hits, 1)]
    body = [hit.facts | {"cosine": hit.cosine} for hit in hits]
    show({"query": text, "hits": body}, table_of(lines, ("rank", "cosine", "caption", "url")), as_json)
