"""The measurements of labels and selection, at a size that takes no time."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.dataset.speed import label_seconds, made_hits, select_seconds


def test_hits_are_as_an_index_gives_them() -> None:
    hits = made_hits(64, 8)
    query, row, cosine = (hits.column(name).to_numpy() for name in ("query", "row", "cosine"))
    assert hits.num_rows == 64 * 8 == len(np.unique(np.stack([query, row]), axis=1).T)
    assert (np.diff(cosine.reshape(64, 8), axis=1) <= 0).all()
    labels_of = {one: set(hits.column("label").to_numpy()[row == one].tolist()) for one in row.tolist()}
    assert max(map(len, labels_of.values())) > 1
    assert np.bincount(row).max() > 2


@pytest.mark.parametrize("method", ["rank", "borda", "cosine"])
def test_labels(method: str) -> None:
    assert label_seconds(queries=64, neighbors=4, method=method) > 0


@pytest.mark.parametrize("method", ["cluster", "entropy"])
def test_selection(method: str) -> None:
    assert select_seconds(labels=4, images=30, dim=16, per_class=5, threads=2, method=method) > 0
