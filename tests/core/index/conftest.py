"""One thread for faiss: more of them only wait for each other on arrays this small."""

from __future__ import annotations

from collections.abc import Iterator

import faiss
import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)
