"""Which workers a flow lets work for it."""

from __future__ import annotations

import pytest

from mudg_core.errors import OrchestrationError
from tasks.code import CODE, check_code


@pytest.mark.parametrize("here", ["0.1.0 abc", "0.1.0"])
def test_the_same_code_and_a_release_without_a_commit_are_taken(here: str) -> None:
    check_code("0.1.0 abc", here)
    check_code(CODE)


@pytest.mark.parametrize(
    ("flow", "here"), [("0.1.0", "0.1.01"), ("0.1.0 abc", "0.1.0 abd"), ("0.2.0", "0.1.0 abc")]
)
def test_f15_a_worker_with_another_code_version_is_refused(flow: str, here: str) -> None:
    with pytest.raises(OrchestrationError) as raised:
        check_code(flow, here)
    assert flow in raised.value.what and here in raised.value.what and "same version" in raised.value.fix
