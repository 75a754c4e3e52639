"""embedding-reader and autofaiss take what we write, as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.peer_environment import run
from mudg_core.index.neighbors import nearest
from tests.interop.conftest import Corpus

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]  # environments are made on the way

SECONDS, NEAREST = 300.0, 5
COLUMNS = ["row", "key", "url", "caption"]


def read(python: Path, out: Path, *words: str | Path) -> tuple[Any, dict[str, list[Any]]]:
    run("embedding-reader", [python, "-m", "tests.interop.programs.read_embeddings", out, *words], SECONDS)
    return np.load(out / "values.npy"), json.loads((out / "lines.json").read_text())


@pytest.mark.parametrize("side", ["img_emb", "text_emb"])
def test_embedding_reader_reads_every_row_in_order(
    corpus: Corpus, autofaiss: Path, side: str, tmp_path: Path
) -> None:
    folder, shard = corpus.folders()[0], corpus.embedded()[0]
    values, lines = read(autofaiss, tmp_path, "--embeddings", folder / side)
    written = shard.images if side == "img_emb" else shard.texts
    assert np.array_equal(values, written.astype(np.float32))
    assert lines["i"] == list(range(len(written)))


@pytest.mark.parametrize("side", ["img_emb", "text_emb"])
def test_embedding_reader_keeps_metadata_beside_its_row(
    corpus: Corpus, autofaiss: Path, side: str, tmp_path: Path
) -> None:
    """Several shards at once: it goes through them by the names of their folders, which are hashes."""
    folders = sorted(corpus.folders())
    words: list[str | Path] = ["--embeddings", *(folder / side for folder in folders)]
    words += ["--metadata", *(folder / "metadata" for folder in folders), "--columns", *COLUMNS]
    values, lines = read(autofaiss, tmp_path, *words)
    shards = [corpus.embedded()[corpus.folders().index(folder)] for folder in folders]
    written = np.concatenate([shard.images if side == "img_emb" else shard.texts for shard in shards])
    assert np.array_equal(values, written.astype(np.float32))
    table = pa.concat_tables([shard.metadata().select(COLUMNS) for shard in shards])
    assert {name: lines[name] for name in COLUMNS} == table.to_pydict()


def test_an_index_of_autofaiss_finds_the_same_neighbours(
    corpus: Corpus, autofaiss: Path, tmp_path: Path
) -> None:
    folder, shard = corpus.folders()[0], corpus.embedded()[0]
    queries = np.asarray(shard.texts, np.float32)
    np.save(tmp_path / "queries.npy", queries)
    words: list[str | Path] = [tmp_path, str(NEAREST), "--embeddings", folder / "img_emb"]
    run("autofaiss", [autofaiss, "-m", "tests.interop.programs.search_autofaiss", *words], SECONDS)
    found = np.load(tmp_path / "found.npy")
    ours = nearest(queries, shard.images, np.arange(len(shard.images)), NEAREST)
    cosines = np.take_along_axis(queries @ np.asarray(shard.images, np.float32).T, found, axis=1)
    np.testing.assert_allclose(cosines, ours.cosines, atol=1e-3)  # equal ones may change places
    assert (found == ours.rows).mean() > 0.99
