"""`clip-retrieval inference` reads our shards, and its embeddings are ours in what we take them for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.embed import peer, pipeline
from benchmarks.peer_environment import environment
from mudg_core.corpus.sources import registry
from mudg_core.encode.shard import EmbeddingShard
from mudg_core.storage import ArtifactStore
from tests.interop.conftest import PEERS, ROWS, ROWS_PER_SHARD, Corpus

pytestmark = [pytest.mark.interop, pytest.mark.timeout(2400)]  # its environment is made on the way

PARTITIONS = {"output_partition_count": 2}


class Published(NamedTuple):
    """Embeddings of somebody else: features, and what is known of each row."""

    images: Any
    texts: Any
    lines: pa.Table


def read_published(folder: Path) -> Published:
    """All partitions as they lie there, in the order of their numbers."""
    numbers = sorted(
        (re.search(r"\d+", file.stem).group() for file in folder.glob("img_emb/*.npy")),  # type: ignore[union-attr]
        key=int,
    )
    images, texts = (
        np.concatenate([np.load(folder / side / f"{side}_{number}.npy") for number in numbers])
        for side in ("img_emb", "text_emb")
    )
    tables = [pq.read_table(folder / f"metadata/metadata_{number}.parquet") for number in numbers]
    return Published(images, texts, pa.concat_tables(tables, promote_options="default"))


@pytest.fixture(scope="session")
def folder(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What it writes for two shards in two partitions."""
    python, out = environment(peer.REQUIREMENTS, PEERS), tmp_path_factory.mktemp("clip-retrieval")
    tars = [pipeline.tar_of(corpus.settings, shard) for shard in corpus.shards]
    pattern, model = peer.link(tars, out / "tars"), pipeline.model_folder(corpus.settings)
    peer.clip_retrieval(python, model, pattern, out / "embeddings", peer.How(batch=64), PARTITIONS)
    return out / "embeddings"


def test_it_writes_the_layout_that_we_share(corpus: Corpus, folder: Path) -> None:
    written = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    parts = ("img_emb/img_emb_{}.npy", "text_emb/text_emb_{}.npy", "metadata/metadata_{}.parquet")
    expected = {name.format(number) for name in parts for number in (0, 1)}
    assert written == expected | {"stats/0.json", "stats/1.json"}
    one = np.load(folder / "img_emb/img_emb_0.npy")
    assert one.dtype == np.float16 and one.flags.c_contiguous
    assert len(one) == len(corpus.embedded()[0].rows) < ROWS_PER_SHARD  # dead links are not in a tar


def test_its_rows_are_those_of_the_shards_in_order(corpus: Corpus, folder: Path) -> None:
    lines = read_published(folder).lines
    assert lines.column_names[:2] == ["image_path", "caption"]
    own = pa.concat_tables([shard.metadata() for shard in corpus.embedded()])
    for theirs, ours in (("image_path", "key"), ("key", "key"), ("caption", "caption"), ("url", "url")):
        assert lines[theirs].to_pylist() == own[ours].to_pylist()
    assert lines["sha256"].to_pylist() == own["sha256"].to_pylist()


def test_its_features_are_ours(corpus: Corpus, folder: Path) -> None:
    found, own = read_published(folder), corpus.embedded()
    for theirs, ours in (
        (found.images, np.concatenate([shard.images for shard in own])),
        (found.texts, np.concatenate([shard.texts for shard in own])),
    ):
        theirs, ours = theirs.astype(np.float32), ours.astype(np.float32)
        np.testing.assert_allclose(np.linalg.norm(theirs, axis=1), 1, atol=1e-3)
        assert (theirs * ours).sum(axis=1).min() > 0.999


def test_our_corpus_takes_it_over(corpus: Corpus, folder: Path, tmp_path: Path) -> None:
    """As `mudg corpus add` and the embed stage do: rows numbered anew, features unchanged."""
    settings = pipeline.settings_for(tmp_path / "store", ROWS, ROWS_PER_SHARD)
    store = ArtifactStore(settings.storage)
    found = registry.inspect(str(folder), store, ROWS_PER_SHARD)
    assert (found.kind, len(found.parts)) == ("embeddings", 2)
    shards = registry.add(store, found, ROWS_PER_SHARD).new
    taken = [EmbeddingShard.open(store.folder(ref)) for ref in pipeline.embed_here(settings, shards)]
    theirs = read_published(folder)
    assert np.concatenate([shard.rows for shard in taken]).tolist() == list(range(len(theirs.images)))
    for side, published in (("images", theirs.images), ("texts", theirs.texts)):
        ours = np.concatenate([getattr(shard, side) for shard in taken])
        np.testing.assert_allclose(ours, published, atol=1e-3)
    lines = pa.concat_tables([shard.metadata() for shard in taken])
    for name in ("key", "url", "caption", "sha256"):
        assert lines[name].to_pylist() == theirs.lines[name].to_pylist()
