"""Matrix products that round alike with any number of threads.

Each runs on one thread (see `serial.py`), and several run side by side. On a processor numpy's BLAS does it:
torch brings MKL, which was 5 to 10 % slower where we measured it (an AMD processor with AVX-512).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

import numpy as np
import torch

from mudg_core.index.serial import SERIAL

T = TypeVar("T")


class Each(Protocol):
    """A `map` over numbers."""

    def __call__(self, function: Callable[[int], T], numbers: Iterable[int], /) -> Iterable[T]: ...


def product(texts: torch.Tensor, images: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """The cosines of every text with every image, into `out` if it is given."""
    if texts.device.type != "cpu":
        return torch.mm(texts, images.t(), out=out)
    into = None if out is None else out.numpy()
    return torch.from_numpy(np.matmul(texts.numpy(), images.numpy().T, out=into))


@contextmanager
def side_by_side(device: str) -> Iterator[Each]:
    """A `map` that runs on as many threads as torch may use; a card needs but one to keep it busy."""
    threads = torch.get_num_threads() if device == "cpu" else 1
    with SERIAL, full_precision(), ThreadPoolExecutor(threads) as pool:
        yield pool.map if threads > 1 else map


@contextmanager
def full_precision() -> Iterator[None]:
    """Training may have allowed TF32 products in this process; these are float32 throughout."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
