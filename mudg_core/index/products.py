"""Matrix products that round alike with any number of threads.

A BLAS that shares one product among threads cuts it into other pieces than one thread does, and its sums may
round otherwise (OpenBLAS at 513 dimensions does). So each product runs on one thread, and several run side by
side. On a processor it is numpy's BLAS that multiplies: torch brings MKL, which was 5 to 10 % slower where we
measured it (an AMD processor with AVX-512).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from threadpoolctl import threadpool_limits

Each = Callable[[Callable[[int], torch.Tensor], Iterable[int]], Iterable[torch.Tensor]]


def multiply(texts: torch.Tensor, images: torch.Tensor, out: torch.Tensor) -> None:
    """The cosines of every text with every image, into `out`."""
    if out.device.type == "cpu":
        np.matmul(texts.numpy(), images.numpy().T, out=out.numpy())
    else:
        torch.mm(texts, images.t(), out=out)


@contextmanager
def side_by_side(device: str) -> Iterator[Each]:
    """A `map` that runs on as many threads as torch may use; a card needs but one to keep it busy."""
    threads = torch.get_num_threads() if device == "cpu" else 1
    with _SERIAL, _full_precision(), ThreadPoolExecutor(threads) as pool:
        yield pool.map if threads > 1 else map


class _Serial:
    """One thread a product, for as long as anybody is inside: the limit holds for the whole process."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limits: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._limits is None:
                self._limits = threadpool_limits(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


_SERIAL = _Serial()


@contextmanager
def _full_precision() -> Iterator[None]:
    """Training may have allowed TF32 products in this process; these are float32 throughout."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
