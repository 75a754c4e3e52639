"""The gate's verdicts as the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mudg_core.evaluate.gate import Estimate, Verdict
from mudg_core.report.words import number, signed


@dataclass(frozen=True)
class WeightRow:
    """One weight between zero-shot and the finetuned student."""

    weight: str
    cells: tuple[str, ...]
    taken: bool


@dataclass(frozen=True)
class SeedView:
    seed: int
    reasons: str
    rows: tuple[WeightRow, ...]


@dataclass(frozen=True)
class GateView:
    seeds: tuple[SeedView, ...]


def gate_view(verdicts: Sequence[Verdict], seeds: Sequence[int]) -> GateView | None:
    if not verdicts:
        return None
    return GateView(tuple(_seed(verdict, seed) for verdict, seed in zip(verdicts, seeds, strict=True)))


def _seed(verdict: Verdict, seed: int) -> SeedView:
    rows = (_row(item, item.alpha == verdict.alpha) for item in verdict.estimates)
    return SeedView(seed, " ".join(verdict.reasons), tuple(rows))


def _row(item: Estimate, taken: bool) -> WeightRow:
    gains = (signed(item.gain), signed(item.low)) if item.alpha else ("", "")
    cells = (number(item.accuracy), *gains, number(item.agreement), number(item.confidence))
    return WeightRow(f"{item.alpha:g}" if item.alpha else "0 (zero-shot)", cells, taken)
