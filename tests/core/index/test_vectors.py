"""Which vectors have a direction, and what it is."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.index import kmeans
from mudg_core.index.vectors import as_unit, normalised, usable
from tests.core.index.making import sphere


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_normalised(kind: type[np.floating]) -> None:
    vectors = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=kind)
    assert normalised(vectors).tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, 0.0]]
    assert normalised(vectors).dtype == np.float32
    assert kmeans.normalised is normalised


@pytest.mark.parametrize("rows", [1, 2, 7, 64, 999])
def test_a_unit_vector_does_not_depend_on_its_company(rows: int) -> None:
    vectors = 3 * sphere(1000, 33)
    assert normalised(vectors)[:rows].tobytes() == normalised(vectors[:rows]).tobytes()


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_f42_not_finite_is_not_usable(value: float, kind: type[np.floating]) -> None:
    vectors = sphere(6, 8).astype(kind)
    vectors[4, 3] = value
    assert usable(vectors).tolist() == [True, True, True, True, False, True]


@pytest.mark.parametrize("length", [0.0, -0.0, 1e-30, 1e30])
def test_f43_without_a_norm_that_float32_can_hold_is_not_usable(length: float) -> None:
    vectors = sphere(3, 8)
    vectors[1] = length
    assert usable(vectors).tolist() == [True, False, True]


def test_usable_is_what_normalised_makes_unit_vectors_of() -> None:
    lengths = 10.0 ** np.arange(-20, 21)
    vectors = (sphere(41, 8) * lengths[:, None]).astype(np.float32)
    with np.errstate(over="ignore"):
        unit = np.abs(np.linalg.norm(normalised(vectors), axis=1) - 1) < 1e-5
    assert usable(vectors).tolist() == unit.tolist()
    assert 20 < usable(vectors).sum() < 41


def test_smallest_half_precision_vector_is_usable() -> None:
    vectors = np.array([[6e-8, 0]], dtype=np.float16)
    assert vectors[0, 0] > 0 and usable(vectors).tolist() == [True]


def test_no_vectors() -> None:
    assert usable(np.zeros((0, 8), np.float32)).tolist() == []


def test_vectors_of_unit_length_keep_their_bits() -> None:
    vectors = sphere(40, 96)
    assert as_unit(vectors) is vectors
    half = vectors.astype(np.float16).astype(np.float32)
    assert as_unit(half) is half, "rounded ones too"
    mixed = vectors.copy()
    mixed[::2] *= np.float32(3)
    mixed[1] = 0
    found = as_unit(mixed)
    assert (found[3::2] == vectors[3::2]).all() and (found[::2] == normalised(mixed[::2])).all()
    assert not found[1].any() and mixed[0] @ mixed[0] > 8
