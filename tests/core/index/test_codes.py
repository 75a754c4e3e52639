"""Fine codes: our sizes are those of faiss' own indexes."""

from __future__ import annotations

from typing import Any

import faiss
import pytest

from mudg_core.errors import SettingsError
from mudg_core.index.codes import code_bytes, vector_bytes

FACTORY = {
    "flat": "Flat",
    "fp16": "SQfp16",
    "sq8": "SQ8",
    "sq6": "SQ6",
    "sq4": "SQ4",
    "pq1": "PQ1",
    "pq8": "PQ8",
    "pq64": "PQ64",
}


@pytest.mark.parametrize("dim", [7, 96, 128, 513, 768])
@pytest.mark.parametrize("code", FACTORY)
def test_faiss_agrees(code: str, dim: int) -> None:
    if code.startswith("pq") and dim % int(code[2:]):
        with pytest.raises(SettingsError, match="equal parts"):
            code_bytes(code, dim)
        return
    alone: Any = faiss.index_factory(dim, FACTORY[code], faiss.METRIC_INNER_PRODUCT)
    in_lists: Any = faiss.index_factory(dim, f"IVF4,{FACTORY[code]}", faiss.METRIC_INNER_PRODUCT)
    assert code_bytes(code, dim) == alone.sa_code_size() == in_lists.code_size


@pytest.mark.parametrize(
    ("code", "size"),
    [("flat", 3072), ("fp16", 1536), ("sq8", 768), ("sq6", 576), ("sq4", 384), ("pq64", 64)],
)
def test_a_vector_of_vit_l_14(code: str, size: int) -> None:
    assert (code_bytes(code, 768), vector_bytes(code, 768)) == (size, size + 8)


@pytest.mark.parametrize("code", ["", "sq5", "SQ4", "pq", "pq0", "pq08", "pq-8", "pq64x4fs", "pq8\n", "pq８"])
def test_unknown_codes_are_refused(code: str) -> None:
    with pytest.raises(SettingsError, match="unknown fine code") as caught:
        vector_bytes(code, 768)
    assert caught.value.exit_code == 2 and "pq64" in caught.value.fix
