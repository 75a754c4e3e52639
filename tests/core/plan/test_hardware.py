"""Profiles, and measuring this machine. Nothing here asserts how fast it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.errors import InputError, StorageError
from mudg_core.plan.hardware import NAMES, profile
from mudg_core.plan.probe import disk_rate, probe


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


def test_this_machine_is_measured_and_nothing_stays(tmp_path: Path) -> None:
    """Bounds that a watch and a supercomputer keep: a wrong unit is off by a thousand."""
    found = probe(tmp_path / "not" / "there" / "yet")
    assert 0.1 < found.sgemm == found.half < 1e5
    assert 0.1 < found.memory_bandwidth < 1e4
    assert 1e-3 < found.storage_bandwidth < 1e3
    assert 0.1 < found.memory < 1e5
    assert found.name == "this-machine" and not list(tmp_path.iterdir())


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be measured") as caught:
        disk_rate(tmp_path / "none", 1 << 20)
    assert caught.value.where == str(tmp_path / "none")
