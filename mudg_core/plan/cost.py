"""What a stage costs, and how long that takes: the roofline.

A stage is at least as slow as the slowest of three: its arithmetic, its traffic through memory, its traffic
with storage. So a time here is a lower bound, which a good implementation comes near to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mudg_core.plan.hardware import Hardware
from mudg_core.plan.placement import GPU_STAGES, SINGLE_ONLY

FLOAT = 4
HALF = 2
BLOCK = 4096  # rows of one operand that share a pass over the other, as faiss.knn takes them


@dataclass(frozen=True)
class Cost:
    """Of one stage; bytes, and multiply-adds as two FLOP."""

    stage: str
    flop: float
    moved: float  # through memory
    read: float  # from storage
    written: float  # to storage
    memory: float  # held at once for the stage's data, all workers together
    stored: float  # what stays

    def plus(self, *, flop: float, moved: float, read: float) -> Cost:
        """The same with some more to do."""
        return replace(self, flop=self.flop + flop, moved=self.moved + moved, read=self.read + read)


@dataclass(frozen=True)
class Estimate:
    """A cost on the machine that the stage runs on: the hardware, or its host."""

    cost: Cost
    machine: Hardware
    hours: float
    bound: str  # which of the three it is
    hours_half: float  # in half precision, where the stage has that

    @property
    def fits(self) -> bool:
        return self.cost.memory <= self.machine.memory_bytes


def estimate(cost: Cost, hardware: Hardware) -> Estimate:
    machine = hardware if cost.stage in GPU_STAGES else hardware.host or hardware
    hours, bound = _slowest(cost, machine, half=False)
    halved, _ = _slowest(cost, machine, half=cost.stage not in SINGLE_ONLY)
    return Estimate(cost, machine, hours, bound, halved)


def _slowest(cost: Cost, hardware: Hardware, *, half: bool) -> tuple[float, str]:
    seconds = {
        "compute": cost.flop / hardware.flop_rate(half=half),
        "memory": cost.moved / hardware.memory_rate,
        "storage": (cost.read + cost.written) / hardware.storage_rate,
    }
    bound = max(seconds, key=lambda name: seconds[name])
    return seconds[bound] / 3600, bound


def measured(item: Estimate, seconds: float) -> Estimate:
    """An estimate whose time is not computed but was measured."""
    return replace(item, hours=seconds / 3600, hours_half=seconds / 3600, bound="measured")


def total(costs: list[Cost]) -> Cost:
    """Stages run one after the other: everything adds up but the memory held at once."""
    sums = {name: sum(getattr(cost, name) for cost in costs) for name in SUMMED}
    return Cost("total", memory=max(cost.memory for cost in costs), **sums)


SUMMED = ("flop", "moved", "read", "written", "stored")


def product(rows: float, columns: float, dim: float) -> tuple[float, float]:
    """FLOP and memory traffic of the nearest of `columns` vectors for each of `rows` vectors.

    Blocks of rows pass over all columns, and every score is written once and read once.
    """
    passes = max(1.0, rows / BLOCK)
    return 2 * rows * columns * dim, FLOAT * (rows * dim + passes * columns * dim + 2 * rows * columns)
