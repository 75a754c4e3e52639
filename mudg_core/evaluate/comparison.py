"""Many ways to a classifier for one target, side by side; and what the paper reports for the same rows.

The paper's figures are facts of its tables (`paper.yaml`), always shown as the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from mudg_core.evaluate.uncertainty import ByDomain, Estimate, difference, estimate, mean_of
from mudg_core.settings import Json
from mudg_core.target.ready import READY
from mudg_core.target.spec import Target
from mudg_core.yaml_text import load as load_yaml

COMPARISON = "comparison.json"
BACKBONES = ("ViT-B/16", "ViT-L/14")
REFERENCE, METHOD = "zero-shot", "mudg"


def interval_text(estimate: Estimate | None, *, signed: bool = False) -> str:
    """As in "43.8 [42.9, 44.6]"; empty where nothing was estimated."""
    if estimate is None:
        return ""
    sign = "+" if signed else ""
    values = (estimate.mean, estimate.low, estimate.high)
    mean, low, high = (f"{round(value, 1) + 0.0:{sign}.1f}" for value in values)
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

    def with_estimates(self, hits: Sequence[ByDomain]) -> Comparison:
        """The same with how sure its rows are; `hits` has those of each row, in percent, in their order."""
        ours = next((own for row, own in zip(self.rows, hits, strict=True) if row.name == METHOD), None)
        rows = []
        for row, own in zip(self.rows, hits, strict=True):
            against = None if ours is None or row.name == METHOD else estimate(difference(ours, own))
            rows.append(replace(row, accuracy=estimate(own), method_gain=against))
        return replace(self, rows=tuple(rows))

    def to_json(self) -> Json:
        return asdict(self) | {"rows": [_row_body(row) for row in self.rows]}

    @classmethod
    def from_json(cls, body: Json) -> Comparison:
        return TypeAdapter(cls).validate_python(body)


def _row_body(row: RowScore) -> Json:
    """With the figures that a reader of the file wants beside those that they follow from."""
    body = asdict(row) | {"mean": round(row.mean, 2), "std": round(row.std, 2)}
    for name, known in (("accuracy", row.accuracy), ("method_gain", row.method_gain)):
        if known is not None:
            freedom = known.freedom if math.isfinite(known.freedom) else None
            body[name] |= {"low": round(known.low, 3), "high": round(known.high, 3), "freedom": freedom}
    return body


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


def overall(comparisons: Sequence[Comparison]) -> Comparison:
    """The mean over targets of rows that all of them have; the deviation is that of this mean over seeds."""
    first = comparisons[0]
    common = [row.name for row in first.rows if all(one.row(row.name) for one in comparisons)]
    rows = [_mean_row([row for one in comparisons if (row := one.row(name))]) for name in common]
    return Comparison("all targets", min((one.seeds for one in comparisons), key=len), tuple(rows))


def _mean_row(rows: Sequence[RowScore]) -> RowScore:
    """A row with one figure for all seeds counts with it in each. Where targets have other numbers of seeds
    than one another, only the mean over all is there."""
    numbers = {len(row.by_seed) for row in rows} - {1}
    length = numbers.pop() if len(numbers) == 1 else 1
    values = [row.by_seed if len(row.by_seed) == length else (row.mean,) * length for row in rows]
    averaged = [row.averaged for row in rows if row.averaged is not None]
    return RowScore(
        rows[0].name,
        rows[0].group,
        rows[0].about,
        by_seed=tuple(float(value) for value in np.mean(values, axis=0)),
        domains={},
        averaged=float(np.mean(averaged)) if len(averaged) == len(rows) else None,
        accuracy=_mean_estimate([row.accuracy for row in rows]),
        method_gain=_mean_estimate([row.method_gain for row in rows]),
    )


def _mean_estimate(estimates: Sequence[Estimate | None]) -> Estimate | None:
    known = [one for one in estimates if one is not None]
    return mean_of(known) if len(known) == len(estimates) else None


@dataclass(frozen=True)
class PaperFigure:
    """Accuracy in percent: the mean over domains, and each of them."""

    value: float
    domains: dict[str, float] = field(default_factory=dict)


def paper_figures(target: Target, backbone: str) -> dict[str, PaperFigure]:
    """By row of the comparison; empty for a target that is none of the paper's tasks, whatever its name."""
    if READY.get(target.name) != len(target.classes):
        return {}
    figures: dict[str, PaperFigure] = {}
    for table in paper_tables():
        if table["backbone"] == backbone and target.name in table["columns"]:
            for row, values in table["rows"].items():
                for figure in _figure(table["columns"], values, target.name):
                    figures[row] = figures[row] if row in figures and not figure.domains else figure
    return figures


def _figure(columns: list[str], values: list[float | None], target: str) -> Iterator[PaperFigure]:
    known = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
    if target in known:
        start = f"{target}/"
        domains = {name.removeprefix(start): v for name, v in known.items() if name.startswith(start)}
        yield PaperFigure(known[target], domains)


def backbone_of(model: str) -> str | None:
    """The paper's name of a student's architecture, if the paper has it."""
    name = model.partition("/")[0].replace("-quickgelu", "")
    return next((one for one in BACKBONES if one.replace("/", "-") == name), None)


@cache
def paper_tables() -> list[dict[str, Any]]:
    text = files("mudg_core.evaluate").joinpath("paper.yaml").read_text(encoding="utf-8")
    tables: list[dict[str, Any]] = load_yaml(text)
    return tables
