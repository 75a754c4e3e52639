"""From search results to hits, each image once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mudg_core.dataset.candidates import flatten, merge_duplicates
from mudg_core.index.ivf import Hits


def table(rows: list[tuple[int, int, int]]) -> pa.Table:
    """Hits given as (query, rank, row)."""
    query, rank, row = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    cosine = (1 - rank / 100).astype(np.float32)
    return pa.table({"query": query, "label": query // 2, "rank": rank, "row": row, "cosine": cosine})


def metadata(lines: list[tuple[int, str | None, str | None]]) -> pa.Table:
    rows, urls, hashes = zip(*lines, strict=True)
    return pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "url": pa.array(urls, pa.string()),
            "sha256": pa.array(hashes, pa.string()),
        }
    )


def listed(hits: pa.Table) -> list[tuple[int, int, int]]:
    return [(line["query"], line["rank"], line["row"]) for line in hits.to_pylist()]


def test_flatten_drops_what_is_missing() -> None:
    hits = Hits(
        rows=np.array([[7, 3, -1], [5, -1, -1], [-1, -1, -1], [3, 7, 5]]),
        cosines=np.array([[0.9, 0.8, -9], [0.7, -9, -9], [-9, -9, -9], [0.6, 0.5, 0.4]], np.float32),
    )
    lines = flatten(hits, np.array([0, 0, 1, 1])).to_pylist()
    expected: list[dict[str, Any]] = []
    for query in range(4):
        for place in range(3):
            if hits.rows[query, place] != -1:
                line = {"query": query, "label": [0, 0, 1, 1][query], "rank": place + 1}
                row = int(hits.rows[query, place])
                expected.append(line | {"row": row, "cosine": float(hits.cosines[query, place])})
    assert lines == expected


def test_same_url_and_same_content_are_one_image() -> None:
    hits = table([(0, 1, 4), (0, 2, 2), (1, 1, 9), (1, 2, 6), (1, 3, 5)])
    facts = metadata([(2, "a", "h1"), (4, "a", "h2"), (5, "b", "h5"), (6, "c", "h3"), (9, "d", "h3")])
    assert listed(merge_duplicates(hits, facts)) == [(0, 1, 2), (1, 1, 6), (1, 3, 5)]


@pytest.mark.parametrize("order", [[1, 2, 3], [3, 2, 1], [2, 3, 1]])
def test_copies_of_copies(order: list[int]) -> None:
    """Two share a URL, one of them shares its content with the third, whichever has the lowest row."""
    a, b, c = order
    facts = metadata([(a, "u", "x"), (b, "u", "y"), (c, "v", "y")])
    hits = table([(0, 5, a), (0, 3, b), (0, 4, c), (2, 1, c)])
    assert listed(merge_duplicates(hits, facts)) == [(0, 3, 1), (2, 1, 1)]


def test_a_long_chain() -> None:
    facts = metadata([(100 - i, f"u{i // 2}", f"h{(i + 1) // 2}") for i in range(20)])
    hits = table([(i, 1, 100 - i) for i in range(20)])
    assert {row for _, _, row in listed(merge_duplicates(hits, facts))} == {81}


def test_unknown_urls_and_hashes_make_nobody_equal() -> None:
    facts = metadata(
        [(1, "", None), (2, "", None), (3, None, ""), (4, None, ""), (5, "u", None), (6, "u", "h")]
    )
    hits = table([(0, rank, rank) for rank in range(1, 7)])
    assert [row for _, _, row in listed(merge_duplicates(hits, facts))] == [1, 2, 3, 4, 5]


def test_against_a_naive_merge() -> None:
    for seed in range(40):
        random = np.random.default_rng(seed)
        rows = random.permutation(50)[:30].tolist()
        facts = [(r, f"u{random.integers(0, 25)}", f"h{random.integers(0, 25)}") for r in rows]
        pairs = {
            (int(q), int(r)) for q, r in zip(random.integers(0, 4, 60), random.choice(rows, 60), strict=True)
        }
        ranked = [
            (q, rank + 1, r) for rank, (q, r) in enumerate(sorted(pairs, key=lambda p: random.random()))
        ]
        lowest = {row: row for row in rows}
        for _ in range(30):
            for row, url, content in facts:
                for other, other_url, other_content in facts:
                    if url == other_url or content == other_content:
                        lowest[row] = min(lowest[row], lowest[other])
        best: dict[tuple[int, int], int] = {}
        for query, rank, row in ranked:
            key = query, lowest[row]
            best[key] = min(rank, best.get(key, 999))
        found = listed(merge_duplicates(table(ranked), metadata(facts)))
        assert {(query, row): rank for query, rank, row in found} == best
        assert len(found) == len(best)
        assert [rank for _, rank, _ in found] == sorted(rank for _, rank, _ in found)  # their order stays


def test_the_line_that_stays_is_whole() -> None:
    facts = metadata([(1, "u", "x"), (2, "u", "y")])
    merged = merge_duplicates(table([(3, 9, 1), (3, 4, 2)]), facts).to_pylist()
    assert merged == [{"query": 3, "label": 1, "rank": 4, "row": 1, "cosine": pytest.approx(0.96)}]


def test_no_hits_at_all() -> None:
    empty = flatten(Hits(rows=np.full((2, 2), -1), cosines=np.zeros((2, 2), np.float32)), np.arange(2))
    facts = metadata([(1, "u", "x")]).slice(0, 0)
    assert merge_duplicates(empty, facts).num_rows == 0
