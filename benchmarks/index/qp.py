"""q(p) against the fastest matrix product of this machine, one thread, in seconds of processor time.

python -m benchmarks.index.qp --texts 8000 --images 50000

No search can be faster than the products it needs. The reference is measured before and after, several
times, since whatever else the machine does slows both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.record import record
from mudg_core.index.neighbors import nearest
from mudg_core.index.vectors import normalised

Float32 = NDArray[np.float32]

DIM = 512
KEEP = 11
SHARE = 16  # images are made up a part at a time
REFERENCES = 4
SIDE = 3072


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=int, default=48_000)
    parser.add_argument("--images", type=int, default=200_000)
    arguments = parser.parse_args()
    figures = measure(arguments.texts, arguments.images)
    record("index-qp", figures)
    sys.stdout.write(json.dumps(figures) + "\n")


def measure(texts: int, images: int) -> dict[str, float]:
    """The share of q(p)'s time that its products would take alone, with the seconds behind it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            return _measure(texts, images)
    finally:
        torch.set_num_threads(threads)


def _measure(texts: int, images: int) -> dict[str, float]:
    random = np.random.default_rng(0)
    queries = normalised(random.standard_normal((texts, DIM), np.float32))
    shard = np.empty((images, DIM), np.float16)
    for part in np.array_split(shard, SHARE):
        part[:] = random.standard_normal(part.shape, np.float32)
    references = [_reference() for _ in range(REFERENCES)]
    started = time.process_time()
    nearest(queries, shard, np.arange(images), KEEP)
    seconds = time.process_time() - started
    references += [_reference() for _ in range(REFERENCES)]
    flop = 2.0 * texts * images * DIM
    rates = {name: statistics.median(reference[name] for reference in references) for name in references[0]}
    gemm = flop / max(rates.values())
    return {
        "qp_gemm_fraction": round(gemm / seconds, 4),
        "qp_seconds": round(seconds, 2),
        "gemm_seconds": round(gemm, 2),
        "qp_gflops": round(flop / seconds / 1e9, 1),
        **{f"{name}_gflops": round(rate / 1e9, 1) for name, rate in rates.items()},
        "texts": texts,
        "images": images,
        "dim": DIM,
        "keep": KEEP,
    }


def _reference() -> dict[str, float]:
    """FLOP a second of one large square product, by library."""
    random = np.random.default_rng(1)
    one, two = (random.standard_normal((SIDE, SIDE), np.float32) for _ in range(2))
    out = np.zeros_like(one)
    tensors = [torch.from_numpy(array) for array in (one, two, out)]
    return {
        "torch": _rate(lambda: torch.mm(tensors[0], tensors[1], out=tensors[2])),
        "numpy": _rate(lambda: np.matmul(one, two, out=out)),
    }


def _rate(product: Callable[[], object]) -> float:
    started = time.process_time()
    product()
    return 2.0 * SIDE**3 / (time.process_time() - started)


if __name__ == "__main__":
    main()
