"""Which class a folder stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from mudg_core.errors import InputError
from mudg_core.evaluate.match import match

CLASSES = ["Red fox", "T-shirt", "t shirt", "cat"]


def labels(
    names: Sequence[str], synonyms: Mapping[str, Sequence[str]] | None = None
) -> tuple[int | None, ...]:
    return match(names, CLASSES, synonyms or {}, "here", "CLASS/*").labels


@pytest.mark.parametrize("name", ["Red fox", "red_fox", "RED-FOX", "red  fox", "red__fox"])
def test_names_match_without_case_and_underscores(name: str) -> None:
    assert labels([name]) == (0,)


def test_the_nearest_spelling_wins() -> None:
    assert labels(["t-shirt", "T Shirt", "cat", "t_shirt"]) == (1, 2, 3, None)  # the last fits two classes


def test_synonyms_stand_in() -> None:
    synonyms = {"cat": ["house_cat", "T-shirt"], "Red fox": ["vulpes"]}
    assert labels(["House cat", "Vulpes", "t-shirt", "dog"], synonyms) == (3, 0, 1, None)
    with pytest.raises(InputError):
        labels(["both"], {"cat": ["both"], "Red fox": ["Both"]})


def test_what_the_target_lacks_is_told() -> None:
    found = match(["cat", "dog", "hen"], CLASSES, {}, "here", "CLASS/*")
    assert found.unknown == ("dog", "hen") and found.labels == (3, None, None)
    with pytest.raises(InputError, match="none of its 7 classes") as caught:
        labels([str(number) for number in range(7)])
    assert caught.value.where == "here" and "synonyms" in caught.value.fix
