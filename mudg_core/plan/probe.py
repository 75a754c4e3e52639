"""`this-machine`: a profile measured in a second or two.

Sizes are large enough to leave the caches and small enough for a laptop. The best of a few tries counts: what
slows a try down is mostly somebody else's work.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from mudg_core.errors import StorageError
from mudg_core.plan.hardware import GIGA, THIS_MACHINE, Hardware

SIDE = 2048
COPY_BYTES = 128 << 20
FILE_BYTES = 64 << 20
TRIES = 3


def probe(folder: Path) -> Hardware:
    """This machine, with the disk that `folder` (or its nearest parent that exists) lies on."""
    rate = sgemm_rate()
    return Hardware(
        name=THIS_MACHINE,
        sgemm=rate,
        half=rate,  # on a CPU half precision saves memory and no time
        memory_bandwidth=copy_rate(),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIGA,
        storage_bandwidth=disk_rate(_existing(folder)),
        source=f"measured just now on {os.cpu_count()} cores",
    )


def sgemm_rate(side: int = SIDE) -> float:
    """GFLOP/s of a square float32 product."""
    left, right = torch.ones(side, side), torch.ones(side, side)
    return 2 * side**3 / _best(lambda: torch.mm(left, right)) / GIGA


def copy_rate(size: int = COPY_BYTES) -> float:
    """GB/s through memory while copying: every byte is read and written."""
    source, sink = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    return 2 * size / _best(lambda: np.copyto(sink, source)) / GIGA


def disk_rate(folder: Path, size: int = FILE_BYTES) -> float:
    """GB/s of writing a file through to the disk and reading it back, half of the bytes each way."""
    data = os.urandom(1 << 20)
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            begin = time.perf_counter()
            for _ in range(size >> 20):
                file.write(data)
            os.fsync(file.fileno())
            _forget(file.fileno())
            file.seek(0)
            while file.read(1 << 20):
                pass
            return 2 * size / (time.perf_counter() - begin) / GIGA
    except OSError as error:
        raise StorageError(
            what=f"the disk cannot be measured: {error}",
            where=str(folder),
            fix="set storage.url to a folder that can be written, or give --hardware",
        ) from error


def _forget(descriptor: int) -> None:
    """Asks the system to drop the file from its cache, so that reading means reading (Linux only)."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _best(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(TRIES):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def _existing(folder: Path) -> Path:
    folder = folder.expanduser().absolute()
    return next(path for path in (folder, *folder.parents) if path.is_dir())
