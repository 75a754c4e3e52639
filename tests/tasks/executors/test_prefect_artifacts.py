"""What is shown in Prefect's UI: how strangers' text and large content get there."""

from __future__ import annotations

import json

import pytest

from tasks.executors.prefect_artifacts import (
    MOST_BYTES,
    MOST_ROWS,
    escape_markdown,
    key_of,
    link_to,
    markdown,
    table,
)

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![pixel](http://evil.example/x.png)",
    "[click](javascript:alert(1))",
    "see http://evil.example",
    "www.evil.example",
    "me@evil.example",
    "`` ` ``<b>x</b>",
    "a|b\n\n# heading\n- item",
    "```mermaid\ngraph TD\n```",
    "**bold** _it_ ~~x~~ &lt;",
    "\\[x\\](y)",
    "right\u202eto left\x00\x1b[31m",
    "half a pair \ud800",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_f74_names_are_text_and_nothing_else(name: str) -> None:
    """Bare text has none of what begins markup, and inside one pair of backticks nothing is markup."""
    found = escape_markdown(name)
    found.encode()  # nothing that UTF-8 has no bytes for
    assert not set(found) & set("\n\r\x00\x1b\u202e")
    if found.startswith("`"):
        assert found.endswith("`") and found.count("`") == 2
    else:
        assert not set(found) & set("<>[]!*~#&|\\`")
        assert not any(sign in found.lower() for sign in ("://", "www.", "@evil."))
    assert json.loads(table("x", "", [{name: name}]).data) == [{found: found}]


@pytest.mark.parametrize(
    "name", ["cat", "St. John's wort", "great_white_shark", "recall@1", "Bücherregal (alt), 19%", "山羊"]
)
def test_plain_names_are_shown_as_they_are(name: str) -> None:
    assert escape_markdown(name) == name


def test_long_text_is_cut() -> None:
    assert escape_markdown("x" * 10_000) == "x" * 499 + "…"


def test_f20_a_table_of_a_thousand_classes_shows_the_first_and_says_where_all_are() -> None:
    rows = [{"class": f"class {n}", "kept": n} for n in range(1000)]
    made = table("funnel animals", "The funnel.", rows, link_to("the report", "https://x.org/r.html"))
    shown = json.loads(made.data)
    assert shown == rows[:MOST_ROWS]
    assert made.about == (
        "The funnel.\n\nThe first 100 of 1,000 rows; all: [the report](<https://x.org/r.html>)"
    )
    assert table("x", "Few.", rows[:3]).about == "Few."


def test_f20_rows_and_lines_have_a_limit_in_bytes() -> None:
    rows = [{f"column {c}": "x" * 400 for c in range(20)} for _ in range(90)]
    made = table("x", "", rows)
    assert len(made.data) <= MOST_BYTES and json.loads(made.data) == rows[: len(json.loads(made.data))]
    assert "of 90 rows" in made.about
    lines = [f"{n} " + "ü" * 500 for n in range(1000)]
    cut = markdown("x", "", lines, "the report")
    assert len(cut.data.encode()) < MOST_BYTES + 100
    *kept, _, last = cut.data.split("\n")
    assert kept == lines[: len(kept)] and last == f"… and {1000 - len(kept):,} lines more: the report"
    assert markdown("x", "", lines[:2]).data == "\n".join(lines[:2])


def test_links_to_files_are_told_and_not_offered() -> None:
    """No browser follows one from a page of the web."""
    assert link_to("report", "file:///x/report.html") == "report: `file:///x/report.html`"


def test_keys_are_as_prefect_wants_them() -> None:
    assert key_of("progress model animals, seed 0/Ü") == "progress-model-animals-seed-0"
