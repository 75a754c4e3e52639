"""Pseudo-labels against plain loops over many random cases, with many ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mudg_core.dataset.pseudo_labels import pseudo_label

NEIGHBORS = 8
Line = dict[str, Any]


def random_hits(seed: int) -> list[Line]:
    """Few rows, ranks and cosines, so that ties of every kind occur."""
    random = np.random.default_rng(seed)
    lines = []
    for query in range(12):
        for row in random.permutation(10)[: random.integers(0, 6)].tolist():
            rank, cosine = int(random.integers(1, 5)), float(np.float32(random.integers(1, 4) / 4))
            lines.append({"query": query, "label": query // 3, "rank": rank, "row": row, "cosine": cosine})
    random.shuffle(lines)
    return lines


def table(lines: list[Line]) -> pa.Table:
    whole = {
        name: np.array([line[name] for line in lines], np.int64) for name in ("query", "label", "rank", "row")
    }
    return pa.table(whole | {"cosine": np.array([line["cosine"] for line in lines], np.float32)})


def by_row(lines: list[Line]) -> dict[int, list[Line]]:
    rows: dict[int, list[Line]] = {}
    for line in lines:
        rows.setdefault(line["row"], []).append(line)
    return rows


def found(lines: list[Line], method: str, seed: int = 0) -> dict[int, Line]:
    labelled = pseudo_label(table(lines), method, NEIGHBORS, seed).to_pylist()
    assert len({line["row"] for line in labelled}) == len(labelled)
    return {line["row"]: line for line in labelled}


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("rank", lambda line: (line["rank"], -line["cosine"], line["label"])),
        ("cosine", lambda line: (-line["cosine"], line["rank"], line["label"])),
    ],
)
def test_rank_and_cosine(method: str, key: Any) -> None:
    for seed in range(60):
        lines = random_hits(seed)
        labelled = found(lines, method)
        rows = by_row(lines)
        assert sorted(labelled) == sorted(rows)
        for row, group in rows.items():
            best = min(group, key=key)
            assert key(labelled[row]) == key(best)
            assert labelled[row] in group


def test_borda() -> None:
    ties = 0
    for seed in range(60):
        lines = random_hits(seed)
        labelled = found(lines, "borda", seed)
        for row, group in by_row(lines).items():
            points: dict[int, int] = {}
            for line in group:
                points[line["label"]] = points.get(line["label"], 0) + NEIGHBORS - (line["rank"] - 1)
            winners = [label for label, sum_ in points.items() if sum_ == max(points.values())]
            ties += len(winners) > 1
            assert labelled[row]["label"] in winners
            own = [line for line in group if line["label"] == labelled[row]["label"]]
            assert labelled[row]["rank"] == min(line["rank"] for line in own)
            assert labelled[row] in group
    assert ties > 10


def test_borda_counts_positions_from_0() -> None:
    """The last of 64 hits is worth a point, so two of them win over the last but one."""
    hits = [(0, 0, NEIGHBORS), (1, 0, NEIGHBORS), (2, 1, NEIGHBORS)]
    lines = [{"query": q, "label": label, "rank": rank, "row": 0, "cosine": 0.5} for q, label, rank in hits]
    assert {found(lines, "borda", seed)[0]["label"] for seed in range(20)} == {0}


def test_borda_ties_fall_by_seed() -> None:
    lines = [{"query": q, "label": q, "rank": 1, "row": 0, "cosine": 0.5} for q in range(4)]
    winners = [found(lines, "borda", seed)[0]["label"] for seed in range(60)]
    assert winners == [found(lines, "borda", seed)[0]["label"] for seed in range(60)]
    assert set(winners) == {0, 1, 2, 3}


@pytest.mark.parametrize("method", ["rank", "borda", "cosine"])
def test_permuting_labels_permutes_the_result_and_nothing_else(method: str) -> None:
    """Ranks tie often here; cosines do not, because then rank and cosine prefer the lower label. Labels that
    found exactly the same are alike for borda too, but none are here."""
    for seed in range(60):
        random = np.random.default_rng(seed)
        lines = random_hits(seed)
        for line in lines:
            line["cosine"] = float(np.float32(random.random()))
        new = random.permutation(4).tolist()
        renamed = [
            line | {"label": new[line["label"]], "query": _renamed(line["query"], new)} for line in lines
        ]
        random.shuffle(renamed)
        before, after = found(lines, method, seed), found(renamed, method, seed)
        for line in before.values():
            line |= {"label": new[line["label"]], "query": _renamed(line["query"], new)}
        assert before == after


def _renamed(query: int, new: list[int]) -> int:
    return 3 * new[query // 3] + query % 3


def test_ties_of_borda_fall_to_either_side() -> None:
    """Two labels that tie for many images share them about evenly, and another seed shares otherwise."""
    lines = [
        {"query": label, "label": label, "rank": 1 + row % 8, "row": row, "cosine": 0.5}
        for row in range(200)
        for label in range(2)
    ] + [{"query": 0, "label": 0, "rank": 1, "row": 999, "cosine": 0.5}]
    labels = [[found(lines, "borda", seed)[row]["label"] for row in range(200)] for seed in range(2)]
    assert 70 < sum(labels[0]) < 130
    assert labels[0] != labels[1]


def test_equal_hits_of_one_label_are_told_by_the_lower_query() -> None:
    lines = [{"query": q, "label": 0, "rank": 2, "row": 5, "cosine": 0.5} for q in (2, 0, 1)]
    for method in ("rank", "borda", "cosine"):
        assert found(lines, method)[5]["query"] == 0


def test_tie_rules_of_rank_one_by_one() -> None:
    def winner(*lines: tuple[int, int, float]) -> int:
        hits = [
            {"query": n, "label": a, "rank": b, "row": 7, "cosine": c} for n, (a, b, c) in enumerate(lines)
        ]
        return int(found(hits, "rank")[7]["label"])

    assert winner((0, 2, 0.9), (1, 1, 0.1)) == 1
    assert winner((0, 1, 0.25), (1, 1, 0.5)) == 1
    assert winner((1, 1, 0.5), (0, 1, 0.5)) == 0


def test_a_hub_wins_every_cosine_and_not_every_rank() -> None:
    """Label 0's text is near to everything. Each image is another label's best, and the hub's nearest."""
    lines = []
    for row in range(6):
        lines.append({"query": 0, "label": 0, "rank": row + 1, "row": row, "cosine": 0.9 - row / 100})
        own = row % 3 + 1
        lines.append(
            {"query": own, "label": own, "rank": row // 3 + 1, "row": row, "cosine": 0.5 - row / 100}
        )
    assert {line["label"] for line in found(lines, "cosine").values()} == {0}
    ranks = [line["label"] for _, line in sorted(found(lines, "rank").items())]
    assert ranks == [0, 2, 3, 1, 2, 3]


def test_columns_and_unknown_method() -> None:
    labelled = pseudo_label(table(random_hits(0)), "rank", NEIGHBORS, 0)
    assert labelled.column_names == ["row", "label", "query", "rank", "cosine"]
    with pytest.raises(ValueError, match="magic"):
        pseudo_label(table(random_hits(0)), "magic", NEIGHBORS, 0)


@pytest.mark.parametrize("method", ["rank", "borda", "cosine"])
def test_no_hits(method: str) -> None:
    assert pseudo_label(table([]), method, NEIGHBORS, 0).num_rows == 0
