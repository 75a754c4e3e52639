"""Exact rank labels against the paper's sentence, written out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mudg_core.dataset import pseudo_labels
from mudg_core.dataset.pseudo_labels import label_exactly, pseudo_label, relabelled
from tests.core.index.making import Float32, modality_gap

PER_LABEL = 3


def world(seed: int, neighbors: int, missed: float) -> tuple[pa.Table, Float32, Float32]:
    """Hits of an index that misses some images, queries, and features by row."""
    random = np.random.default_rng(seed)
    features, texts = modality_gap(300, seed)
    queries = texts[random.permutation(300)[:12]]
    lines = []
    for query, text in enumerate(queries):
        seen = np.flatnonzero(random.random(300) >= missed)
        cosines = features[seen] @ text
        for rank, place in enumerate(np.argsort(-cosines)[:neighbors].tolist()):
            lines.append((query, query // PER_LABEL, rank + 1, int(seen[place]), float(cosines[place])))
    names = ("query", "label", "rank", "row", "cosine")
    columns = dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))
    types = [(name, pa.float32() if name == "cosine" else pa.int64()) for name in names]
    return pa.table(columns, pa.schema(types)), queries, features


def literal(hits: pa.Table, queries: Float32, features: Float32) -> dict[int, tuple[int, int, int]]:
    """Row to (label, query, rank): every query sorts all candidates; the best rank decides."""
    rows = sorted(set(hits.column("row").to_pylist()))
    best: dict[int, tuple[int, float, int, int]] = {}
    for query, text in enumerate(queries):
        cosines = {row: float(features[row] @ text) for row in rows}
        for place, row in enumerate(sorted(rows, key=lambda row: -cosines[row])):
            claim = (place + 1, -cosines[row], query // PER_LABEL, query)
            best[row] = min(best.get(row, claim), claim)
    return {row: (label, query, rank) for row, (rank, _, label, query) in best.items()}


def as_dict(labelled: pa.Table) -> dict[int, tuple[int, int, int]]:
    return {line["row"]: (line["label"], line["query"], line["rank"]) for line in labelled.to_pylist()}


@pytest.mark.parametrize("missed", [0.0, 0.3, 0.7])
def test_as_the_paper_says(missed: float) -> None:
    differences = 0
    for seed in range(8):
        hits, queries, features = world(seed, 10, missed)
        found = label_exactly(hits, queries, features.__getitem__, 10)
        expected = literal(hits, queries, features)
        assert as_dict(found.labelled) == expected
        fast = pseudo_label(hits, "rank", 10, 0)
        changed = sum(expected[row][0] != label for row, (label, _, _) in as_dict(fast).items())
        assert relabelled(fast, found.labelled) == changed
        differences += changed
    assert (differences == 0) == (missed == 0)


def test_lists_grow_only_where_images_are_left() -> None:
    depths = {}
    for missed in (0.0, 0.7):
        hits, queries, features = world(0, 4, missed)
        depths[missed] = label_exactly(hits, queries, features.__getitem__, 4).depth
    assert depths[0.0] == 4 and depths[0.7] > 4


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    hits, queries, features = world(3, 6, 0.6)
    whole = label_exactly(hits, queries, features.__getitem__, 6)
    monkeypatch.setattr(pseudo_labels, "HITS_AT_ONCE", 20)
    monkeypatch.setattr(pseudo_labels, "IMAGES_AT_ONCE", 7)
    parts = label_exactly(hits, queries, features.__getitem__, 6)
    assert parts.depth == whole.depth and parts.labelled.equals(whole.labelled)


def test_no_hits() -> None:
    hits, queries, features = world(0, 4, 0.0)
    found = label_exactly(hits.slice(0, 0), queries, features.__getitem__, 4)
    assert found.labelled.num_rows == 0
    assert found.labelled.column_names == ["row", "label", "query", "rank", "cosine"]
