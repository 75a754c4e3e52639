"""Whether new shards still fit the centroids."""

from __future__ import annotations

import math

import pytest

from mudg_core.errors import DataError
from mudg_core.index.part import drift


def test_the_same_data_has_not_drifted() -> None:
    found = drift((1.2, 0.8), (1.2, 0.8))
    assert (found.kmeans, found.cross_modal, found.retrain) == (1.0, 1.0, False)
    assert "as far" in str(found) and "still fit" in str(found)


@pytest.mark.parametrize(
    ("new", "retrain"),
    [
        ((1.0, 2.0), False),
        ((1.09, 2.18), False),
        ((1.11, 2.0), True),  # images alone
        ((1.0, 2.21), True),  # texts alone
        ((0.5, 2.21), True),  # one that improved does not make up for the other
        ((0.5, 0.5), False),
    ],
)
def test_either_objective_more_than_a_tenth_worse_asks_for_training(
    new: tuple[float, float], retrain: bool
) -> None:
    assert drift((1.0, 2.0), new).retrain is retrain


def test_the_threshold_is_a_parameter() -> None:
    assert drift((1.0, 1.0), (1.25, 1.0), tolerance=0.3).retrain is False
    assert drift((1.0, 1.0), (1.04, 1.0), tolerance=0.03).retrain is True


def test_the_verdict_is_one_sentence_with_its_numbers() -> None:
    words = str(drift((1.0, 2.0), (1.25, 1.9)))
    assert "25.0 % farther" in words and "5.0 % fewer texts" in words and "beyond the 10 % allowed" in words
    assert words.endswith("train again.") and words.count(". ") == 0


def test_a_perfect_training_fit() -> None:
    assert drift((0.0, 1.0), (0.0, 1.0)).retrain is False
    worse = drift((0.0, 1.0), (0.1, 1.0))
    assert worse.kmeans == math.inf and worse.retrain and "infinitely" in str(worse)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1])
def test_what_is_no_distance_is_refused(bad: float) -> None:
    for pair in [((bad, 1.0), (1.0, 1.0)), ((1.0, 1.0), (1.0, bad))]:
        with pytest.raises(DataError, match="neither distances nor shares"):
            drift(*pair)
