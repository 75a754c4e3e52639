"""Many ways to a classifier for one target, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mudg_core.evaluate.resampling import interval
from mudg_core.settings import Json

Float64 = NDArray[np.float64]

COMPARISON, REPLICATES = "comparison.json", "replicates.npy"
REFERENCE, METHOD = "zero-shot", "mudg"


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval over evaluation images and seeds (`resampling.py`)."""

    mean: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Zero is outside of the interval."""
        return self.low > 0 or self.high < 0


def interval_text(estimate: Estimate | None, *, signed: bool = False) -> str:
    """As in "43.8 [42.9, 44.6]"; empty where nothing was estimated."""
    if estimate is None:
        return ""
    sign = "+" if signed else ""
    mean, low, high = (
        f"{round(value, 1) + 0.0:{sign}.1f}" for value in (estimate.mean, estimate.low, estimate.high)
    )
    return f"{mean} [{low}, {high}]"


@dataclass(frozen=True)
class RowScore:
    """Accuracies in percent. `by_seed` are means over domains; one alone holds for all seeds. `paper` has the
    paper's figures by backbone, for a task that is the paper's. `method_gain` is what the method is better by
    than this row, on the same images and seeds."""

    name: str
    group: str
    about: str
    by_seed: tuple[float, ...]
    domains: dict[str, float]
    averaged: float | None = None  # with prompts averaged, where `by_seed` is of single ones
    paper: dict[str, float] = field(default_factory=dict)
    accuracy: Estimate | None = None
    method_gain: Estimate | None = None

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

    def with_intervals(self, replicates: Float64) -> Comparison:
        """The same with what `resampling.replicates` says of its rows, in their order."""
        method = next((place for place, row in enumerate(self.rows) if row.name == METHOD), None)
        rows = [
            replace(row, accuracy=Estimate(row.mean, *interval(own)))
            for row, own in zip(self.rows, replicates, strict=True)
        ]
        if method is not None:
            gains = (rows[method].mean - np.array([row.mean for row in rows])).tolist()
            spread = [interval(replicates[method] - own) for own in replicates]
            rows = [
                row if place == method else replace(row, method_gain=Estimate(gains[place], *spread[place]))
                for place, row in enumerate(rows)
            ]
        return replace(self, rows=tuple(rows))

    def to_json(self) -> Json:
        summed = [asdict(row) | {"mean": round(row.mean, 2), "std": round(row.std, 2)} for row in self.rows]
        return asdict(self) | {"rows": summed}

    @classmethod
    def from_json(cls, body: Json) -> Comparison:
        rows = tuple(_row_of(row) for row in body["rows"])
        return cls(body["target"], tuple(body["seeds"]), rows, body["left_out"])


def _row_of(body: Json) -> RowScore:
    plain = {name: body[name] for name in ("name", "group", "about", "domains", "averaged", "paper")}
    accuracy, gain = (Estimate(**body[name]) if body[name] else None for name in ("accuracy", "method_gain"))
    return RowScore(by_seed=tuple(body["by_seed"]), accuracy=accuracy, method_gain=gain, **plain)


def row_score(
    meta: Json, scores: Sequence[Mapping[str, Json]], way: str, paper: Mapping[str, float]
) -> RowScore:
    """One row from its scores, one a seed, each {"single": ..., "averaged": ...} as `Score` has it."""
    own = [score[way] for score in scores]
    domains = {name: float(np.mean([score["domains"][name] for score in own])) for name in own[0]["domains"]}
    both = way == "single" and "averaged" in scores[0]
    averaged = float(np.mean([score["averaged"]["mean"] for score in scores])) if both else None
    by_seed = tuple(float(score["mean"]) for score in own)
    return RowScore(**meta, by_seed=by_seed, domains=domains, averaged=averaged, paper=dict(paper))


def overall(comparisons: Sequence[Comparison], replicates: Sequence[Float64]) -> Comparison:
    """The mean over targets of rows that all of them have; the deviation is that of this mean over seeds.
    Targets are trained and evaluated apart, so their replicates are drawn apart, and averaged too."""
    first, seeds = comparisons[0], min(len(one.seeds) for one in comparisons)
    common = [row.name for row in first.rows if all(one.row(row.name) for one in comparisons)]
    rows = [_mean_row([row for one in comparisons if (row := one.row(name))], seeds) for name in common]
    means = np.mean(
        [_lines(one, drawn, common) for one, drawn in zip(comparisons, replicates, strict=True)], axis=0
    )
    return Comparison("all targets", first.seeds[:seeds], tuple(rows)).with_intervals(means)


def _lines(made: Comparison, replicates: Float64, names: Sequence[str]) -> Float64:
    places = {row.name: place for place, row in enumerate(made.rows)}
    return replicates[[places[name] for name in names]]


def _mean_row(rows: Sequence[RowScore], seeds: int) -> RowScore:
    """A row with one figure for all seeds counts with it in each."""
    length = max(min(len(row.by_seed), seeds) for row in rows)
    values = [row.by_seed[:length] if len(row.by_seed) > 1 else row.by_seed * length for row in rows]
    by_seed = tuple(float(value) for value in np.mean(values, axis=0))
    averaged = [row.averaged for row in rows if row.averaged is not None]
    mean = float(np.mean(averaged)) if len(averaged) == len(rows) else None
    return RowScore(rows[0].name, rows[0].group, rows[0].about, by_seed, {}, mean)
