"""Fine codes: what a vector costs inside the index, and which vector a code stands for.

    flat    float32            sq8, sq6, sq4   scalar quantiser of that many bits a dimension
    fp16    half precision     sq8u            the same with one range for all dimensions: a quicker scan
                               pqM             product quantiser: M subquantisers of 8 bits, as in pq64

Bytes of pqM may differ between CPUs, as faiss trains and encodes it in float32; those of the others do not.
faiss decodes while it scans, with whatever instructions a CPU has, and these round in their own ways. Here
codes are decoded by arithmetic of single numbers: exact scores are those of these vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from mudg_core.errors import SettingsError
from mudg_core.index.vectors import Float64

ID_BYTES = 8
PQ_BITS = 8
SCALAR_BITS = {"flat": 32, "fp16": 16, "sq8": 8, "sq8u": 8, "sq6": 6, "sq4": 4}
QUANTISERS = {
    "fp16": "QT_fp16",
    "sq8": "QT_8bit",
    "sq8u": "QT_8bit_uniform",
    "sq6": "QT_6bit",
    "sq4": "QT_4bit",
}
_PRODUCT = re.compile(r"pq([1-9][0-9]*)")
Codes = NDArray[np.uint8]
Decode = Callable[[Codes], NDArray[np.floating]]
BITS = {
    faiss.ScalarQuantizer.QT_8bit: 8,
    faiss.ScalarQuantizer.QT_8bit_uniform: 8,
    faiss.ScalarQuantizer.QT_6bit: 6,
    faiss.ScalarQuantizer.QT_4bit: 4,
}


def code_bytes(code: str, dim: int) -> int:
    """Bytes of one vector of `dim` dimensions; each vector begins on a byte of its own."""
    if code in SCALAR_BITS:
        return -(-SCALAR_BITS[code] * dim // 8)
    return subquantisers(code, dim)


def vector_bytes(code: str, dim: int) -> int:
    """What an inverted list holds for a vector: its code and its row id."""
    return code_bytes(code, dim) + ID_BYTES


def subquantisers(code: str, dim: int) -> int:
    """M of `pqM`; a product quantiser cuts a vector into M equal parts."""
    match = _PRODUCT.fullmatch(code)
    if match is None:
        raise SettingsError(
            what=f"unknown fine code {code!r}",
            where="index.code",
            fix=f"use one of {', '.join(SCALAR_BITS)}, or pqM such as pq64",
        )
    parts = int(match[1])
    if dim % parts:
        raise SettingsError(
            what=f"{code} cannot cut {dim} dimensions into {parts} equal parts",
            where="index.code",
            fix="choose an M that divides the model's dimension",
        )
    return parts


def faiss_code(code: str, dim: int, cells: int) -> Any:
    """An empty, untrained faiss index with this code. Cells are assigned outside of it (`coarse.py`), so its
    quantiser is empty and its residuals are off: a residual from a text mean would carry the modality gap."""
    quantiser: Any = faiss.IndexFlatIP(dim)
    if code == "flat":
        index: Any = faiss.IndexIVFFlat(quantiser, dim, cells, faiss.METRIC_INNER_PRODUCT)
    elif code in SCALAR_BITS:
        kind = getattr(faiss.ScalarQuantizer, QUANTISERS[code])
        index = faiss.IndexIVFScalarQuantizer(quantiser, dim, cells, kind, faiss.METRIC_INNER_PRODUCT, False)
    else:
        parts = subquantisers(code, dim)
        index = faiss.IndexIVFPQ(quantiser, dim, cells, parts, PQ_BITS, faiss.METRIC_INNER_PRODUCT)
        index.by_residual = False
    index.own_fields = True
    quantiser.this.disown()
    return index


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
