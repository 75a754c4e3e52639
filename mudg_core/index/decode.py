"""Fine codes as the vectors they stand for.

faiss decodes while it scans, with whatever instructions a CPU has, and these round in their own ways. What a
code stands for is said here once, by arithmetic of single numbers: exact scores are those of these vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from mudg_core.index.vectors import Float64

Codes = NDArray[np.uint8]
Decode = Callable[[Codes], NDArray[np.floating]]

BITS = {
    faiss.ScalarQuantizer.QT_8bit: 8,
    faiss.ScalarQuantizer.QT_8bit_uniform: 8,
    faiss.ScalarQuantizer.QT_6bit: 6,
    faiss.ScalarQuantizer.QT_4bit: 4,
}


def decoder(index: Any) -> tuple[Decode, float]:
    """How the codes of a part are decoded, and how long a vector of their ranges is: what float32 errors of
    decoding grow with."""
    if isinstance(index, faiss.IndexIVFFlat):
        return lambda codes: codes.view(np.float32), 0.0
    if isinstance(index, faiss.IndexIVFPQ):
        return _product_decoder(index), 1.0
    if index.sq.qtype == faiss.ScalarQuantizer.QT_fp16:
        return lambda codes: codes.view(np.float16), 0.0
    return _scalar_decoder(index)


def _scalar_decoder(index: Any) -> tuple[Decode, float]:
    bits, trained = BITS[index.sq.qtype], faiss.vector_to_array(index.sq.trained).astype(np.float64)
    low, width = trained[: len(trained) // 2], trained[len(trained) // 2 :]
    most = (1 << bits) - 1

    def decode(codes: Codes) -> Float64:
        steps = (_levels(codes, bits, index.d) + 0.5) / most
        return np.asarray(low + steps * width, dtype=np.float64)

    ranges = np.broadcast_to(np.abs(low) + np.abs(width), index.d)
    return decode, float(np.linalg.norm(ranges))


def _levels(codes: Codes, bits: int, dim: int) -> NDArray[np.floating]:
    """Numbers of so many bits each, packed from the lowest bit on."""
    if bits == 8:
        return codes.astype(np.float64)
    single = np.unpackbits(codes, axis=1, bitorder="little")[:, : bits * dim].reshape(len(codes), dim, bits)
    return np.asarray((single * (1 << np.arange(bits))).sum(axis=2), dtype=np.float64)


def _product_decoder(index: Any) -> Decode:
    table = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, index.pq.ksub, index.pq.dsub)
    parts = np.arange(index.pq.M)
    return lambda codes: table[parts, codes].reshape(len(codes), -1)
