"""A search over all parts of an index, side by side on the cluster."""

from __future__ import annotations

from functools import partial

from mudg_core.index.ivf import Hits
from mudg_core.index.routing import Probing
from mudg_core.index.search import merge, read_part
from mudg_core.index.vectors import Float32, Int64
from mudg_core.index.version import IndexVersion, open_part, open_searcher
from mudg_core.settings import IndexSettings
from mudg_core.storage import ArtifactRef, ArtifactStore
from tasks.policy import Work


def search_parts(work: Work, version: IndexVersion, queries: Float32, neighbors: int) -> Hits:
    """Routed once, read in every part wherever there is a free worker, merged and re-ranked here."""
    settings = work.settings.index
    searcher = open_searcher(work.store, version)
    queries = searcher.unit(queries)
    cells = searcher.choose(queries, probing(settings))
    wanted = max(neighbors, settings.rerank)
    read = partial(_read, work.store, queries, cells, wanted, searcher.spilled)
    found = merge(work.host.spread(read, version.parts, work.settings.compute.task_timeout_seconds), wanted)
    return searcher.finish(queries, found, neighbors, settings.rerank)


def probing(settings: IndexSettings) -> Probing:
    return Probing(settings.probes, settings.mass, settings.gain)


def _read(
    store: ArtifactStore, queries: Float32, cells: Int64, wanted: int, spilled: bool, part: ArtifactRef
) -> Hits:
    return read_part(open_part(store, part), queries, cells, wanted, spilled)
