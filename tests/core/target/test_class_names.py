"""Names that are one name, and names that look like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.errors import InputError
from mudg_core.target.class_names import lookalikes
from mudg_core.target.spec import parse_target


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("caf\u00e9", "cafe\u0301"),
        ("Caf\u00c9", "cafe\u0301"),
        ("STRASSE", "stra\u00dfe"),
        ("cat", "CAT"),
        ("cat", "cat\ufe0f"),
        ("cat", "c\u034fat"),
        ("cat", "c\u3164at"),
    ],
)
def test_f90_names_equal_after_nfc_and_case_folding_are_refused(first: str, second: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_target(f"name: zoo\nclasses:\n- {first}\n- {second}\n".encode())
    assert repr(first) in refusal.value.what and repr(second) in refusal.value.what
    assert refusal.value.where.endswith(":4")


@pytest.mark.parametrize(
    "other", ["c\u0430t", "\u0441\u0430t", "\uff43at", "C\u0391T", "\u0421\u0410\u0422", "c\u0251\u0442"]
)
def test_f90_names_that_look_the_same_are_told(other: str) -> None:
    assert lookalikes(["Ill", "lll", "bill"]) == [("Ill", "lll")]
    assert lookalikes(["cat", "dog", other]) == [("cat", other)]
    assert lookalikes(["cat", "dog", "\u043a\u043e\u0442"]) == []


def test_f90_a_command_warns_of_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from mudg.cli.target import warn_of_lookalikes

    warn_of_lookalikes(["cat", "c\u0430t"])
    assert "'cat' and 'c\\u0430t' look the same" in capfd.readouterr().err
