"""The same rows, labels, choices and hashes on every CPU (fault 97); the index has a test of its own."""

from __future__ import annotations

import pytest

from tests.support.kernels import CANARY, environments, unlike


@pytest.mark.timeout(900)
def test_f97_no_outcome_hangs_on_a_kernel_or_on_threads() -> None:
    """Bits of a float32 product do differ where there are kernels to choose from: else this shows nothing."""
    different = unlike("tests.core.kernel_outcomes")
    assert different.pop(CANARY, None) or not any("Haswell" in name for name in environments())
    assert different == {}
