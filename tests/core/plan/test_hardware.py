"""Profiles of hardware."""

from __future__ import annotations

import pytest

from mudg_core.errors import InputError
from mudg_core.plan.hardware import NAMES, profile


def test_a100_is_sixty_percent_of_its_datasheet() -> None:
    a100 = profile("a100")
    assert a100.flop_rate() == pytest.approx(11.7e12)
    assert a100.flop_rate(half=True) == pytest.approx(187.2e12)
    assert a100.memory_rate == pytest.approx(1.2234e12)
    assert a100.memory_bytes == 80e9
    assert a100.kind == "gpu" and a100.host is profile("cpu-64") and profile("cpu-64").kind == "cpu"


def test_cpu_64_gains_nothing_from_half_precision() -> None:
    """64 cores x 2.45 GHz x 32 FLOP, of which 60 %."""
    cpu = profile("cpu-64")
    assert cpu.flop_rate() == cpu.flop_rate(half=True) == pytest.approx(3.0106e12, rel=1e-4)


@pytest.mark.parametrize("name", ["", "h100", "A100", "this-machine"])
def test_unknown_profiles_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="unknown hardware") as caught:
        profile(name)
    assert all(known in caught.value.fix for known in NAMES)
