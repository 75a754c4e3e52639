"""Queries on disk: order is what later stages rely on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mudg_core.target.queries import LABELS, QUERIES, Queries, read_features, read_queries
from mudg_core.target.spec import Target

TARGET = Target(name="pets", classes=("cat", "dog"), template="a photo of a {}.")


def lengths(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array([[len(text)] for text in texts], dtype=np.float32)


def test_queries_stand_label_by_label() -> None:
    queries = Queries(TARGET, ("which is red", "which is old"))
    assert queries.prompts() == [
        ["a photo of a cat, which is red.", "a photo of a dog, which is red."],
        ["a photo of a cat, which is old.", "a photo of a dog, which is old."],
    ]
    assert queries.in_order() == [
        "a photo of a cat, which is red.",
        "a photo of a cat, which is old.",
        "a photo of a dog, which is red.",
        "a photo of a dog, which is old.",
    ]


def test_without_descriptor_the_plain_prompt_stays() -> None:
    assert Queries(TARGET, (None,)).in_order() == ["a photo of a cat.", "a photo of a dog."]


def test_round_trip(tmp_path: Path) -> None:
    queries = Queries(TARGET, (None, "which is long and old"))
    queries.write(tmp_path, [], lengths)
    again = read_queries(tmp_path)
    assert (again.target.classes, again.descriptors) == (TARGET.classes, queries.descriptors)
    assert read_features(tmp_path, QUERIES)[:, 0].tolist() == [len(text) for text in queries.in_order()]
    assert read_features(tmp_path, LABELS)[:, 0].tolist() == [17, 17]
