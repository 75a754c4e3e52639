"""Hardware profiles: how fast a machine multiplies, moves and stores.

Rates are what a profile's source claims; `efficiency` says which share of them is counted on. Bandwidths are
in GB/s, arithmetic in GFLOP/s, memory in GB, all decimal and for one device; devices share the storage.
"""

from __future__ import annotations

from dataclasses import dataclass

from mudg_core.errors import InputError

GIGA = 1e9
THIS_MACHINE = "this-machine"


@dataclass(frozen=True)
class Hardware:
    """One kind of device, and how many of it. A GPU has a host, whose CPUs run what has no GPU code."""

    name: str
    sgemm: float  # float32 matrix products, which is what the pipeline computes in
    half: float  # the same in half precision; where nothing is gained, the same number
    memory_bandwidth: float
    memory: float
    storage_bandwidth: float
    source: str
    efficiency: float = 1.0
    devices: int = 1
    host: Hardware | None = None  # one, however many devices

    @property
    def kind(self) -> str:
        return "gpu" if self.host else "cpu"

    def flop_rate(self, *, half: bool = False) -> float:
        """FLOP a second that all devices together are counted on for."""
        return (self.half if half else self.sgemm) * self.efficiency * self.devices * GIGA

    @property
    def memory_rate(self) -> float:
        return self.memory_bandwidth * self.efficiency * self.devices * GIGA

    @property
    def storage_rate(self) -> float:
        return self.storage_bandwidth * GIGA

    @property
    def memory_bytes(self) -> float:
        return self.memory * self.devices * GIGA


CPU_64 = Hardware(
    name="cpu-64",
    sgemm=64 * 2.45 * 32,  # cores x GHz x FLOP a cycle: two 8-wide fused multiply-adds
    half=64 * 2.45 * 32,
    memory_bandwidth=204.8,  # eight channels of DDR4-3200
    memory=512,
    storage_bandwidth=2,
    efficiency=0.6,
    source="64 cores with AVX2 at 2.45 GHz (as AMD EPYC 7763), 60 % of their peak reached; "
    "512 GB of memory and storage at 2 GB/s, assumed",
)
A100 = Hardware(
    name="a100",
    sgemm=19_500,
    half=312_000,
    memory_bandwidth=2_039,
    memory=80,
    storage_bandwidth=2,
    efficiency=0.6,
    host=CPU_64,
    source="NVIDIA A100 80 GB SXM datasheet (FP32, FP16 tensor cores, HBM2e), 60 % of it reached; "
    "storage: an NVMe drive at 2 GB/s, assumed",
)
PROFILES = {profile.name: profile for profile in (A100, CPU_64)}
NAMES = (THIS_MACHINE, *PROFILES)


def profile(name: str) -> Hardware:
    """A written profile; `this-machine` is not one, it is measured (`probe.py`)."""
    if name not in PROFILES:
        raise InputError(what=f"unknown hardware {name!r}", fix=f"use one of {', '.join(NAMES)}")
    return PROFILES[name]
