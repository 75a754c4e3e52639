"""exp and log of our own: right, and the same numbers as written here on whatever CPU this runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mudg_core.index.exact_powers import same_exp, same_log, sums_in_order

BITS = {-20.0: "0x1.1b48655f3726bp-29", -1 / 3: "0x1.6edd3122f2ea5p-1", 2.5: "0x1.85d6fd931e0bcp+3"}


def test_exp_is_right() -> None:
    values = np.linspace(-100, 50, 40_001)
    assert same_exp(values) == pytest.approx([math.exp(value) for value in values.tolist()], rel=2e-14)
    assert same_exp(np.array([[0.0], [-1e9]])).tolist() == [[1.0], same_exp(np.array([-700.0])).tolist()]
    assert same_exp(np.zeros((0, 3))).shape == (0, 3)


def test_f97_exp_to_the_last_bit() -> None:
    powers = same_exp(np.array(list(BITS)))
    assert [power.hex() for power in powers.tolist()] == list(BITS.values())


def test_log_is_right() -> None:
    values = np.exp(np.linspace(-600, 600, 4001))
    logs = [math.log(value) for value in values.tolist()]
    assert same_log(values) == pytest.approx(logs, rel=1e-14, abs=1e-14)


def test_sums_in_order() -> None:
    values = np.array([[1e16, 1.0, -1e16], [-1e16, 1e16, 1.0]])
    assert sums_in_order(values).tolist() == [0.0, 1.0]
    assert sums_in_order(values[:, :0]).tolist() == [0.0, 0.0]
