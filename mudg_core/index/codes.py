"""Fine codes: what a vector costs inside the index.

    flat    float32            sq8, sq6, sq4   scalar quantiser of that many bits a dimension
    fp16    half precision     sq8u            the same with one range for all dimensions: a quicker scan
                               pqM             product quantiser: M subquantisers of 8 bits, as in pq64

Bytes of pqM may differ between CPUs, as faiss trains and encodes it in float32; those of the others do not.
The size decides whether an index fits on a disk, so it is said here once, apart from what builds the index.
"""

from __future__ import annotations

import re
from typing import Any

import faiss

from mudg_core.errors import SettingsError

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
