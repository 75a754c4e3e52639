"""What a stage costs, and how long that takes: the roofline.

A stage is at least as slow as the slowest of three: its arithmetic, its traffic through memory, its traffic
with storage. So a time here is a lower bound, which a good implementation comes near to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mudg_core.plan.hardware import Hardware

FLOAT, HALF = 4, 2
BLOCK = 4096  # rows of one operand that share a pass over the other, as faiss.knn takes them
# No GPU code have k-means, the assignment to cells, the router, spilling, searches (faiss on CPUs), labels,
# selection, the search for leaks and the copy of evaluation images. A test compares with what asks for a GPU.
GPU_STAGES = {"embed", "pair", "augment", "fetch", "finetune", "held-out", "gate"}
GPU_STAGES |= {"prints", "zero-shot", "scores", "classifier"}
SINGLE_ONLY = {"pair"}  # in single precision on a GPU too, as the nearest must be the nearest


@dataclass(frozen=True)
class Cost:
    """Of one stage; bytes, and multiply-adds as two FLOP."""

    stage: str
    flop: float = 0
    moved: float = 0  # through memory
    read: float = 0  # from storage
    written: float = 0  # to storage, where all of it stays
    memory: float = 0  # held at once for the stage's data, all workers together


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
    hours_half, _ = _slowest(cost, machine, half=cost.stage not in SINGLE_ONLY)
    return Estimate(cost, machine, hours, bound, hours_half)


def _slowest(cost: Cost, hardware: Hardware, *, half: bool) -> tuple[float, str]:
    seconds = {
        "compute": cost.flop / hardware.flop_rate(half=half),
        "memory": cost.moved / hardware.memory_rate,
        "storage": (cost.read + cost.written) / hardware.storage_rate,
    }
    bound = max(seconds, key=lambda name: seconds[name])
    return seconds[bound] / 3600, bound


def measured(estimated: Estimate, seconds: float) -> Estimate:
    """An estimate whose time is not computed but was measured."""
    return replace(estimated, hours=seconds / 3600, hours_half=seconds / 3600, bound="measured")


def total(costs: list[Cost]) -> Cost:
    """Stages run one after the other: everything adds up but the memory held at once."""
    summed = ("flop", "moved", "read", "written")
    sums = {name: sum(getattr(cost, name) for cost in costs) for name in summed}
    return Cost("total", memory=max(cost.memory for cost in costs), **sums)


def product(rows: float, columns: float, dim: float) -> tuple[float, float]:
    """FLOP and memory traffic of the nearest of `columns` vectors for each of `rows` vectors.

    Blocks of rows pass over all columns, and every score is written once and read once.
    """
    passes = max(1.0, rows / BLOCK)
    return 2 * rows * columns * dim, FLOAT * (rows * dim + passes * columns * dim + 2 * rows * columns)


@dataclass(frozen=True)
class Figure:
    """What the paper's authors measured for one stage, to compare an estimate with. Theirs, not ours."""

    stage: str
    short: str
    what: str
    seconds: float
    stored_bytes: float | None = None


PAPER_SOURCE = 'the paper, appendix "Hardware and Computational Cost" (A40, A100 and L40S, one GPU at a time)'
PAPER_QUERIES = 16_000  # ImageNet-1K: 1000 classes, 16 augmentations
PAPER_POOL = 4_227
PAPER_TESTED = 50_000  # ImageNet-1K's validation images
PAPER_FIGURES = {
    figure.stage: figure
    for figure in (
        Figure("train", "1 h", "paired k-means on the 20M subset of LAION", 3_600),
        Figure("populate", "about 1 d, 850 GB", "adding all of LAION-2B to the 4-bit index", 86_400, 850e9),
        Figure("search", "30 s", "retrieval for the 16,000 queries of ImageNet-1K", 30),
        Figure("label", "55 s", "rank labelling for ImageNet-1K", 55),
        Figure("select", "9 min 20 s", "clustering for ImageNet-1K, on one CPU", 560),
        Figure("fetch", "158 s", "download of the 96,000 selected images", 158),
    )
}
