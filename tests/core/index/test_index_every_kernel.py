"""The same cells, centroids, router, rows and codes on every CPU (fault 97)."""

from __future__ import annotations

import pytest

from tests.support.kernels import CANARY, unlike


@pytest.mark.timeout(900)
def test_f97_no_row_of_an_index_hangs_on_a_kernel_or_on_threads() -> None:
    different = unlike("tests.core.index.kernel_outcomes")
    different.pop(CANARY, None)
    assert different == {}
