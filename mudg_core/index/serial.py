"""One thread for each matrix product.

A BLAS that shares one product among threads cuts it into other pieces than one thread does, and its sums may
round otherwise (OpenBLAS at 513 dimensions does). One thread a product makes runs on one machine alike, and
several products side by side are quicker than one on several threads. It does not make CPUs alike: no outcome
hangs on these bits (`exact_products.py`).
"""

from __future__ import annotations

import threading

from threadpoolctl import threadpool_limits


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


SERIAL = _Serial()
