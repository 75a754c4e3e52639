"""The table and the exit code of `make attack`, without a stack."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.security import attack
from tests.security.results import NeedsRoot, NotTried, Result, Topic, attempt, exit_code, run_topics, table


def refused() -> str:
    return "403"


def got_through() -> str:
    raise AssertionError("answered 200")


def not_tried() -> str:
    raise NotTried("no browser is installed")


def needs_root() -> str:
    raise NeedsRoot("nobody else can act as another user")


def raises() -> str:
    raise ZeroDivisionError("nobody foresaw this")


def fails() -> str:
    pytest.fail("pixels were decoded")


def skips() -> str:
    pytest.skip("no Chromium")


def ran(*attacks: Callable[[], str]) -> list[Result]:
    def topic() -> Iterable[Result]:
        return [attempt(f"attack {number}", 80, one) for number, one in enumerate(attacks)]

    return run_topics({"a topic": topic}, lambda _: None)


@pytest.mark.parametrize(
    ("attacks", "code", "last_line"),
    [
        ([refused, refused], 0, "2 tried, 2 refused, 0 got through"),
        ([refused, got_through], 1, "2 tried, 1 refused, 1 got through"),
        ([refused, not_tried], 1, "1 tried, 1 refused, 0 got through, 1 not tried"),
        ([refused, skips], 1, "1 tried, 1 refused, 0 got through, 1 not tried"),
        ([refused, raises], 1, "2 tried, 1 refused, 1 got through"),
        ([fails, refused], 1, "2 tried, 1 refused, 1 got through"),
        ([], 1, "0 tried, 0 refused, 0 got through, 1 not tried"),
    ],
)
def test_the_last_line_and_the_exit_code(attacks: list[Callable[[], str]], code: int, last_line: str) -> None:
    results = ran(*attacks)
    assert exit_code(results) == code
    assert table(results).splitlines()[-1] == last_line


@pytest.mark.parametrize(
    ("user", "attacks", "code", "last_line"),
    [
        (1000, [refused, needs_root], 0, "1 tried, 1 refused, 0 got through, 1 skipped: needs root"),
        (1000, [got_through, needs_root], 1, "1 tried, 0 refused, 1 got through, 1 skipped: needs root"),
        (1000, [needs_root], 1, "0 tried, 0 refused, 0 got through, 1 skipped: needs root"),
        (0, [refused, needs_root], 1, "1 tried, 1 refused, 0 got through, 1 not tried"),
    ],
)
def test_what_needs_root_is_skipped_without_it_and_by_root_alone_a_failure(
    user: int, attacks: list[Callable[[], str]], code: int, last_line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    results = ran(*attacks)
    assert exit_code(results) == code and table(results).splitlines()[-1] == last_line
    assert ("skipped: needs root" in "\n".join(table(results).splitlines()[:-1])) == (user != 0)


def test_no_attack_at_all_is_no_success() -> None:
    assert exit_code([]) == 1


def test_a_topic_that_ends_early_is_reported_and_keeps_its_results() -> None:
    def early() -> Iterator[Result]:
        yield attempt("the first", 79, refused)
        raise OSError("the server is gone")

    results = run_topics({"early": early}, lambda _: None)
    assert exit_code(results) == 1
    assert "OSError: the server is gone" in table(results)
    assert table(results).endswith("1 tried, 1 refused, 0 got through, 1 not tried")


def test_attacks_of_one_kind_share_a_row_but_those_that_got_through() -> None:
    def topic() -> Iterator[Result]:
        for case, one in {"a": refused, "b": got_through, "c": refused}.items():
            yield attempt("S3 without keys", 80, one, case)

    lines = table(run_topics({"another user": topic}, lambda _: None)).splitlines()
    assert [line.split() for line in lines if "S3" in line] == [
        ["S3", "without", "keys", "f80", "2", "refused", "403"],
        ["S3", "without", "keys:", "b", "f80", "1", "GOT", "THROUGH", "AssertionError:", "answered", "200"],
    ]
    columns = {line.index("f80") for line in lines if "S3" in line}
    assert len(columns) == 1 and "another user" in lines


def test_what_strangers_wrote_does_not_steer_the_terminal() -> None:
    def hostile() -> str:
        return "\x1b[2J\x9bowned"

    assert "\\x1b[2J\\x9bowned" in table(ran(hostile))


@pytest.mark.parametrize(("one", "code"), [(refused, 0), (raises, 1), (not_tried, 1)])
def test_the_command_prints_the_table_and_ends_with_the_code(
    one: Callable[[], str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attack, "all_attacks", lambda: ran(one))
    with warnings.catch_warnings():
        assert attack.main() == code
    assert "attack 0" in capsys.readouterr().out


def test_topics_are_all_there() -> None:
    """Each is a function that is called when its turn comes, so that one that fails costs only itself."""
    topics: dict[str, Topic] = attack.topics(None, None)  # type: ignore[arg-type]
    assert len(topics) == 6
