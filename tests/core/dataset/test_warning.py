"""Warnings as they are written, and of classes with few images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mudg_core.dataset.warning import (
    TargetWarning,
    read_warnings,
    warn_of_descriptors,
    warn_of_few,
    write_warnings,
)


def test_warnings_survive_the_disk(tmp_path: Path) -> None:
    told = [TargetWarning("few", ("жук", "b"), "a message", {"wanted": 4}), TargetWarning("leaks", (), "x")]
    write_warnings(told, tmp_path)
    assert read_warnings(tmp_path) == told


def queries(losses: list[int], chosen: int, clusters: list[list[str]]) -> dict[str, Any]:
    scored = [{"descriptor": f"which is {n}", "loss": loss, "rise": 0.0} for n, loss in enumerate(losses)]
    return {"scored": scored, "descriptors": ["x"] * chosen, "clusters": clusters}


def test_descriptors_that_only_the_tie_break_chose_are_told() -> None:
    (alone,) = warn_of_descriptors(queries([0] * 2000, 4, [["cat"], ["dog"]]))
    assert (alone.kind, dict(alone.numbers)) == ("descriptors", {"pool": 2000, "loss": 0, "groups": 0})
    assert "no two classes are in one group, so all 2,000 of the pool have loss 0" in alone.message
    (equal,) = warn_of_descriptors(queries([1] * 9, 4, [["cat", "dog"], ["car"]]))
    assert dict(equal.numbers) == {"pool": 9, "loss": 1, "groups": 1}
    assert "all 9 of the pool pull 1 of 1 groups" in equal.message


def test_descriptors_that_eq_4_chose_or_that_are_all_there_are_are_not_told() -> None:
    assert warn_of_descriptors(queries([0, 1, 1], 1, [["cat", "dog"]])) == []
    assert warn_of_descriptors(queries([1, 1, 1], 3, [["cat", "dog"]])) == []
    assert warn_of_descriptors(queries([], 1, [])) == []  # of a method that measures nothing


def test_a_class_with_few_candidates_or_few_kept_is_told() -> None:
    told = warn_of_few(["a", "b", "c", "d"], [16, 7, 20, 8], [16, 7, 5, 8], 16, 0.5)
    assert [item.classes for item in told] == [("b",), ("c",)]
    assert told[0].numbers == {"candidates": 7, "wanted": 16, "chosen": 7}
    assert "only 7 candidate" in told[0].message and "add images" in told[0].message
    assert "only 5 images were kept" in told[1].message


def test_before_anything_is_fetched_candidates_alone_count() -> None:
    told = warn_of_few(["a", "b"], [16, 0], None, 16, 0.5)
    assert [(item.classes, dict(item.numbers)) for item in told] == [
        (("b",), {"candidates": 0, "wanted": 16})
    ]
