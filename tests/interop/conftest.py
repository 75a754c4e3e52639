"""A small corpus, drawn and embedded as a worker does it, for peers to read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.embed import pipeline
from benchmarks.index.peer_runs import REQUIREMENTS
from benchmarks.peer_environment import CACHE, ROOT, environment
from mudg_core.encode.shard import EmbeddingShard
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef

ROWS, ROWS_PER_SHARD = 400, 200
PEERS = ROOT / CACHE  # kept from run to run, and shared with the benchmarks


@dataclass(frozen=True)
class Corpus:
    settings: Settings
    shards: list[ArtifactRef]
    embeddings: list[ArtifactRef]

    def folders(self) -> list[Path]:
        """Of the embeddings, in the order of their rows."""
        return [pipeline.folder_of(self.settings, ref) for ref in self.embeddings]

    def embedded(self) -> list[EmbeddingShard]:
        return [EmbeddingShard.open(folder) for folder in self.folders()]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    settings = pipeline.settings_for(tmp_path_factory.mktemp("store"), ROWS, ROWS_PER_SHARD)
    shards = pipeline.draw_here(settings)
    return Corpus(settings, shards, pipeline.embed_here(settings, shards))


@pytest.fixture(scope="session")
def autofaiss() -> Path:
    """A Python with autofaiss and embedding-reader."""
    return environment(REQUIREMENTS / "autofaiss.txt", PEERS)
