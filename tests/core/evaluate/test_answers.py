"""Answers image by image, to a file and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.evaluate.measures import ANSWERS, column_name, read_hits, write_answers

LABELS = {"sketch": np.array([0, 1, 2]), "art": np.array([1, 1])}


def test_hits_come_back_by_domain_in_their_order(tmp_path: Path) -> None:
    predicted = {"art": np.array([1, 0]), "sketch": np.array([0, 0, 2])}
    write_answers(tmp_path, LABELS, {column_name("mudg", "single"): predicted})
    hits = read_hits(tmp_path / ANSWERS, "mudg/single")
    assert {name: own.tolist() for name, own in hits.items()} == {
        "sketch": [True, False, True],
        "art": [True, False],
    }


def test_an_arm_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    write_answers(tmp_path, LABELS, {})
    with pytest.raises(DataError, match="no answers of mudg/single"):
        read_hits(tmp_path / ANSWERS, "mudg/single")
