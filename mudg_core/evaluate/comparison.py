"""Many ways to a classifier for one target, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from mudg_core.settings import Json

COMPARISON = "comparison.json"


@dataclass(frozen=True)
class RowScore:
    """Accuracies in percent. `by_seed` are means over domains; one alone holds for all seeds. `paper` has the
    paper's figures by backbone, for a task that is the paper's."""

    name: str
    group: str
    about: str
    by_seed: tuple[float, ...]
    domains: dict[str, float]
    averaged: float | None = None  # with prompts averaged, where `by_seed` is of single ones
    paper: dict[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return float(np.mean(self.by_seed))

    @property
    def std(self) -> float:
        return float(np.std(self.by_seed, ddof=1)) if len(self.by_seed) > 1 else 0.0


@dataclass(frozen=True)
class Comparison:
    """`left_out` says why a row is missing."""

    target: str
    seeds: tuple[int, ...]
    rows: tuple[RowScore, ...]
    left_out: dict[str, str] = field(default_factory=dict)

    def row(self, name: str) -> RowScore | None:
        return next((row for row in self.rows if row.name == name), None)

    def backbones(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row.paper))

    def to_json(self) -> Json:
        summed = [asdict(row) | {"mean": round(row.mean, 2), "std": round(row.std, 2)} for row in self.rows]
        return asdict(self) | {"rows": summed}

    @classmethod
    def from_json(cls, body: Json) -> Comparison:
        names = ("name", "group", "about", "domains", "averaged", "paper")
        rows = tuple(
            RowScore(by_seed=tuple(row["by_seed"]), **{name: row[name] for name in names})
            for row in body["rows"]
        )
        return cls(body["target"], tuple(body["seeds"]), rows, body["left_out"])


def row_score(
    meta: Mapping[str, str], scores: Sequence[Mapping[str, Json]], way: str, paper: Mapping[str, float]
) -> RowScore:
    """One row from its scores, one a seed, each {"single": ..., "averaged": ...} as `Score` has it."""
    own = [score[way] for score in scores]
    domains = {name: float(np.mean([score["domains"][name] for score in own])) for name in own[0]["domains"]}
    both = way == "single" and "averaged" in scores[0]
    averaged = float(np.mean([score["averaged"]["mean"] for score in scores])) if both else None
    by_seed = tuple(float(score["mean"]) for score in own)
    return RowScore(**meta, by_seed=by_seed, domains=domains, averaged=averaged, paper=dict(paper))


def overall(comparisons: Sequence[Comparison]) -> Comparison:
    """The mean over targets of rows that all of them have; the deviation is that of this mean over seeds."""
    first, seeds = comparisons[0], min(len(one.seeds) for one in comparisons)
    rows = []
    for row in first.rows:
        same = [one.row(row.name) for one in comparisons]
        there = [found for found in same if found is not None]
        if len(there) == len(comparisons):
            rows.append(_mean_row(there, seeds))
    return Comparison("all targets", first.seeds[:seeds], tuple(rows))


def _mean_row(rows: Sequence[RowScore], seeds: int) -> RowScore:
    """A row with one figure for all seeds counts with it in each."""
    length = max(min(len(row.by_seed), seeds) for row in rows)
    values = [row.by_seed[:length] if len(row.by_seed) > 1 else row.by_seed * length for row in rows]
    by_seed = tuple(float(value) for value in np.mean(values, axis=0))
    averaged = [row.averaged for row in rows if row.averaged is not None]
    mean = float(np.mean(averaged)) if len(averaged) == len(rows) else None
    return RowScore(rows[0].name, rows[0].group, rows[0].about, by_seed, {}, mean)
