"""Fine codes as the vectors they stand for.

faiss decodes while it scans, with whatever instructions a CPU has, and these round in their own ways. What a
code stands for is said here once, by arithmetic of single numbers: exact scores are those of these vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Decoder:
    """Float32 errors of a scan grow with how long a decoded vector can be, and the vector of ranges that
    its coordinates come from."""

    decode: Decode
    longest: float = 1.001
    ranges: float = 0.0


def decoder(index: Any) -> Decoder:
    if isinstance(index, faiss.IndexIVFFlat):
        return Decoder(lambda codes: codes.view(np.float32))
    if isinstance(index, faiss.IndexIVFPQ):
        return _product_decoder(index)
    if index.sq.qtype == faiss.ScalarQuantizer.QT_fp16:
        return Decoder(lambda codes: codes.view(np.float16))
    return _scalar_decoder(index)


def _scalar_decoder(index: Any) -> Decoder:
    """A unit vector is moved into the ranges of training first: a coordinate becomes no larger than it was or
    than that end of its range which is nearer to zero. So with the vector of these ends it is at right angles
    at worst. (Unit vectors have been in those ranges, so that makes the root of two at most.) Decoding moves
    each coordinate by up to half a step."""
    bits, trained = BITS[index.sq.qtype], faiss.vector_to_array(index.sq.trained).astype(np.float64)
    low, width = trained[: len(trained) // 2], trained[len(trained) // 2 :]
    most = (1 << bits) - 1

    def decode(codes: Codes) -> Float64:
        steps = (_levels(codes, bits, index.d) + 0.5) / most
        return np.asarray(low + steps * width, dtype=np.float64)

    each = np.abs(low) + width, width / (2 * most), np.maximum(0, np.maximum(low, -(low + width)))
    ranges, half, ends = (float(np.linalg.norm(np.broadcast_to(one, index.d))) for one in each)
    return Decoder(decode, float(np.hypot(Decoder.longest, ends)) + half, ranges)


def _levels(codes: Codes, bits: int, dim: int) -> NDArray[np.floating]:
    """Numbers of so many bits each, packed from the lowest bit on."""
    if bits == 8:
        return codes.astype(np.float64)
    single = np.unpackbits(codes, axis=1, bitorder="little")[:, : bits * dim].reshape(len(codes), dim, bits)
    return np.asarray((single * (1 << np.arange(bits))).sum(axis=2), dtype=np.float64)


def _product_decoder(index: Any) -> Decoder:
    table = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, index.pq.ksub, index.pq.dsub)
    parts = np.arange(index.pq.M)
    longest = float(np.sqrt((table.astype(np.float64) ** 2).sum(axis=2).max(axis=1).sum()))
    return Decoder(lambda codes: table[parts, codes].reshape(len(codes), -1), longest, longest)
