"""The roofline: which bound wins, and by what."""

from __future__ import annotations

import pytest

from mudg_core.plan.cost import Cost, estimate, product, total
from tests.core.plan.making import machine

HOUR = 3.6e12  # of FLOP or bytes on a machine that does 1e9 a second


@pytest.mark.parametrize(
    ("cost", "hours", "bound", "half"),
    [
        (Cost("s", 2 * HOUR, HOUR, 0, 0, 0), 2, "compute", 1),  # half: 0.5 h, so memory bounds it
        (Cost("s", HOUR, 3 * HOUR, HOUR, HOUR, 0), 3, "memory", 3),
        (Cost("s", HOUR, HOUR, HOUR, 4 * HOUR, 0), 5, "storage", 5),
        (Cost("s", 8 * HOUR, 0, 0, 0, 0), 8, "compute", 2),
    ],
)
def test_the_slowest_counts(cost: Cost, hours: float, bound: str, half: float) -> None:
    found = estimate(cost, machine())
    assert (found.hours, found.bound, found.hours_half) == (hours, bound, half)


def test_devices_share_work_and_memory_but_one_storage() -> None:
    four = machine(devices=4)
    assert estimate(Cost("s", 8 * HOUR, 0, 0, 0, 0), four).hours == 2
    assert estimate(Cost("s", 0, 8 * HOUR, 0, 0, 0), four).hours == 2
    assert estimate(Cost("s", 0, 0, 8 * HOUR, 0, 0), four).hours == 8
    assert estimate(Cost("s", 0, 0, 0, 0, 3e9), four).fits
    assert not estimate(Cost("s", 0, 0, 0, 0, 3e9), machine()).fits


def test_a_stage_without_gpu_code_runs_on_the_host() -> None:
    """The card is four times as fast as its host; `train` is k-means, which has no GPU code."""
    card = machine(sgemm=4, memory=4, host=machine(half=1))
    on_gpu, on_cpu = (estimate(Cost(s, 8 * HOUR, 0, 0, 0, 2e9), card) for s in ("embed", "train"))
    assert (on_gpu.machine.kind, on_gpu.hours, on_gpu.fits) == ("gpu", 2, True)
    assert (on_cpu.machine.kind, on_cpu.hours, on_cpu.hours_half, on_cpu.fits) == ("cpu", 8, 8, False)
    assert estimate(Cost("embed", HOUR, 0, 0, 0, 0), machine()).machine.kind == "cpu"


def test_q_of_p_is_never_in_half_precision() -> None:
    card = machine(host=machine())
    assert estimate(Cost("pair", 8 * HOUR, 0, 0, 0, 0), card).hours_half == 8
    assert estimate(Cost("embed", 8 * HOUR, 0, 0, 0, 0), card).hours_half == 2


def test_only_a_share_of_the_datasheet_is_counted_on() -> None:
    half_as_good = machine(efficiency=0.5)
    assert estimate(Cost("s", HOUR, 0, 0, 0, 0), half_as_good).hours == 2
    assert estimate(Cost("s", 0, HOUR, 0, 0, 0), half_as_good).hours == 2
    assert estimate(Cost("s", 0, 0, HOUR, 0, 0), half_as_good).hours == 1


def test_rows_pass_over_the_columns_in_blocks() -> None:
    """8192 rows are two blocks: the 3 columns of 5 floats are read twice."""
    flop, moved = product(8192, 3, 5)
    assert flop == 2 * 8192 * 3 * 5
    assert moved == 4 * (8192 * 5 + 2 * 3 * 5 + 2 * 8192 * 3)


def test_memory_is_not_summed() -> None:
    both = total([Cost("a", 1, 2, 3, 4, 50), Cost("b", 10, 20, 30, 40, 5)])
    assert both == Cost("total", 11, 22, 33, 44, 50)
