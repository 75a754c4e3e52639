"""Queries on disk: labels and order are what later stages rely on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mudg_core.target.descriptor_selection import Scored
from mudg_core.target.prompts import Augmentations, of_classes, of_descriptors
from mudg_core.target.queries import (
    EXPLAINED,
    LABELS,
    QUERIES,
    Queries,
    explained,
    read_features,
    read_queries,
    read_ranked,
    write_queries,
)
from mudg_core.target.spec import Target

TARGET = Target(name="pets", classes=("cat", "dog"), template="a photo of a {}.")
FELINE = Target(name="pets", classes=("cat", "dog"), synonyms={"cat": ("kitty", "tabby")})


def lengths(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array([[len(text)] for text in texts], dtype=np.float32)


def asked(target: Target, *descriptors: str | None) -> Queries:
    return Queries.of(target, of_descriptors(target, "random", descriptors))


def test_queries_stand_label_by_label() -> None:
    queries = asked(TARGET, "which is red", "which is old")
    assert queries.prompts() == [
        ["a photo of a cat, which is red.", "a photo of a dog, which is red."],
        ["a photo of a cat, which is old.", "a photo of a dog, which is old."],
    ]
    assert queries.texts == (
        "a photo of a cat, which is red.",
        "a photo of a cat, which is old.",
        "a photo of a dog, which is red.",
        "a photo of a dog, which is old.",
    )
    assert queries.labels == (0, 0, 1, 1)


def test_synonyms_add_queries_and_no_prompts() -> None:
    plain, more = (asked(target, "which is red", None) for target in (TARGET, FELINE))
    assert more.matrix == plain.matrix
    assert more.labels == (0,) * 6 + (1,) * 2
    assert more.texts[2:6] == (
        "a photo of a kitty, which is red.",
        "a photo of a kitty.",
        "a photo of a tabby, which is red.",
        "a photo of a tabby.",
    )
    assert set(plain.texts) < set(more.texts)


def test_a_class_with_few_phrases_is_asked_for_once_with_each() -> None:
    made = of_classes(TARGET, "per-class", [["four legs"], ["a nose", "two ears", "a tail"]])
    queries = Queries.of(TARGET, made)
    assert [row[0] for row in queries.matrix] == ["a photo of a cat, which has four legs."] * 3
    assert queries.labels == (0, 1, 1, 1)


def test_adding_a_class_changes_no_other_class() -> None:
    wider = Target(name="pets", classes=("cat", "dog", "hen"))
    for descriptors in ((None,), ("which is red", None)):
        few, many = asked(TARGET, *descriptors), asked(wider, *descriptors)
        assert many.texts[: len(few.texts)] == few.texts and many.labels[: len(few.labels)] == few.labels


def test_round_trip(tmp_path: Path) -> None:
    made = of_descriptors(FELINE, "random", [None, "which is long and old"])
    queries = Queries.of(FELINE, made)
    write_queries(queries, made, tmp_path, lengths)
    again = read_queries(tmp_path)
    assert again.target.model_dump(exclude={"name"}) == FELINE.model_dump(exclude={"name"})
    assert (again.method, again.descriptors, again.matrix, again.texts, again.labels) == (
        "random",
        queries.descriptors,
        queries.matrix,
        queries.texts,
        queries.labels,
    )
    assert read_features(tmp_path, QUERIES)[:, 0].tolist() == [len(text) for text in queries.texts]
    assert read_features(tmp_path, LABELS)[:, 0].tolist() == [17, 17]


def test_scores_are_kept_and_the_ends_explained(tmp_path: Path) -> None:
    """Every descriptor has its line; which clusters it collapses is told where somebody will look."""
    scored = tuple(Scored(f"which is {n}", n // 500, n / 7, tuple(range(n // 500))) for n in range(4000))
    lines = explained(scored)
    told = [place for place, line in enumerate(lines) if "collapsed" in line]
    assert told == [*range(EXPLAINED), *range(4000 - EXPLAINED, 4000)]
    assert lines[-1] == {
        "descriptor": "which is 3999",
        "loss": 7,
        "rise": 3999 / 7,
        "collapsed": tuple(range(7)),
    }
    made = Augmentations(
        "adaptive",
        ("which is 0", "which is 7"),
        of_descriptors(TARGET, "adaptive", ["which is 0", "which is 7"]).templates,
        scored,
        (("cat", "dog"),),
    )
    write_queries(Queries.of(TARGET, made), made, tmp_path, lengths)
    body = json.loads((tmp_path / "queries.json").read_text())
    assert body["clusters"] == [["cat", "dog"]] and len(body["scored"]) == 4000
    ranked = read_ranked(tmp_path)
    assert ranked[:4] == ("which is 0", "which is 7", "which is 1", "which is 2")
    assert sorted(ranked) == sorted(item.descriptor for item in scored)
    assert all("collapsed" in line for line in explained(scored[: 2 * EXPLAINED]))
