"""The error tree: what its docstring shows, what an error says, and that it survives a process border."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from mudg_core import errors
from mudg_core.errors import MudgError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, MudgError)]


def names(kinds: list[type[MudgError]]) -> list[str]:
    return [kind.__name__ for kind in kinds]


@pytest.mark.parametrize("kind", CLASSES, ids=names(CLASSES))
def test_pickles_with_its_fields(kind: type[MudgError]) -> None:
    copy = pickle.loads(pickle.dumps(kind(what="it broke", where="file:3", fix="mend it")))
    assert type(copy) is kind
    assert (copy.what, copy.where, copy.fix) == ("it broke", "file:3", "mend it")
    assert str(copy) == "it broke\n  where: file:3\n  to do: mend it"


@pytest.mark.parametrize("kind", CLASSES, ids=names(CLASSES))
def test_has_what_the_task_policy_asks_for(kind: type[MudgError]) -> None:
    assert isinstance(kind.retryable, bool)
    assert 0 < kind.exit_code < 128


def test_what_alone_is_one_line() -> None:
    assert str(MudgError(what="it broke")) == "it broke"
    assert str(MudgError(what="it broke", fix="mend it")) == "it broke\n  to do: mend it"


def test_fields_are_given_by_name() -> None:
    with pytest.raises(TypeError):
        MudgError("it broke")  # type: ignore[misc]


def test_docstring_shows_the_tree() -> None:
    shown: dict[str, str] = {}
    above = {0: "MudgError"}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^    ([│ ]*)[├└]── (\w+)", line):
            depth = len(match[1]) // 4 + 1
            shown[match[2]] = above[depth - 1]
            above[depth] = match[2]
    real = {kind.__name__: kind.__mro__[1].__name__ for kind in CLASSES if kind is not MudgError}
    assert len(real) > 10
    assert shown == real
