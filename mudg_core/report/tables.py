"""What the template shows of a target beside charts: rows of tables, counts and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mudg_core.dataset.warning import TargetWarning
from mudg_core.evaluate.comparison import METHOD, REFERENCE, Comparison, RowScore
from mudg_core.evaluate.gate import Verdict as GateVerdict
from mudg_core.evaluate.measures import Calibration
from mudg_core.evaluate.uncertainty import Estimate
from mudg_core.report.charts.plot import KINDS, MAX_COLOURS, kinds_of
from mudg_core.report.data import ConfusedPair, IndexReport, Measures, ReportData, TargetReport
from mudg_core.report.words import ARMS, arm_name, count, duration, number, shorten, signed

MAX_PAIRS = 12
MAX_NOTICES = 500
OPEN_NOTICES = 6
WARNINGS = {  # kind -> (title, tally), the gravest first
    "leaks": ("Evaluation images in the corpus", "of leaked images"),
    "absent": ("Probably absent from the corpus", "of absent classes"),
    "twins": ("Nearly the same class", "of classes that are nearly one"),
    "few": ("Few images", "of few images"),
    "descriptors": ("Descriptors that Eq. 4 did not choose", "of descriptors chosen by the tie-break"),
    "unmatched": ("Classes of the evaluation data that are left out", "of evaluation data left out"),
    "unmeasured": ("Not evaluated", "of classes without evaluation images"),
}
Figures = list[tuple[str, str]]  # (value, words)


def cut(limit: int, total: int, words: str) -> str:
    """Says that a list is cut, so that nobody takes a part for the whole."""
    return f"Showing {limit:,} of {total:,} {words}." if total > limit else ""


def domains(target: TargetReport) -> list[str]:
    return list(dict.fromkeys(d for score in target.scores.values() for d in score.domains))


def accuracy_rows(target: TargetReport) -> list[tuple[str, str, str, list[tuple[str, bool]]]]:
    """(arm, its name, spread over seeds, cells) of every arm that was measured. Cells are the domains and,
    last, their mean, each with whether it is the best of its column."""
    arms, columns = _in_order(target.scores), domains(target)
    values = {
        arm: [*(target.scores[arm].domains.get(d, math.nan) for d in columns), target.scores[arm].mean]
        for arm in arms
    }
    best = [_best(column) for column in zip(*values.values(), strict=True)]
    rows = []
    for arm in arms:
        cells = [(number(value), number(value) == top) for value, top in zip(values[arm], best, strict=True)]
        std = target.scores[arm].std
        rows.append((arm.removesuffix("_averaged"), arm_name(arm), number(std) if std else "", cells))
    return rows


def _in_order(arms: Iterable[str]) -> list[str]:
    """Known arms in their usual order, then any others."""
    present = set(arms)
    return [arm for arm in ARMS if arm in present] + sorted(present - set(ARMS))


def _best(values: Iterable[float]) -> str:
    finite = [value for value in values if math.isfinite(value)]
    return number(max(finite)) if finite else ""


def lost_classes(target: TargetReport) -> int:
    """How many classes have a lower accuracy than zero-shot."""
    plain, ours = (target.class_accuracy.get(arm, ()) for arm in ("zero_shot", "mudg"))
    return sum(after < before for before, after in zip(plain, ours, strict=False))


def gate_rows(verdict: GateVerdict) -> list[tuple[str, bool, tuple[str, ...]]]:
    """(weight, whether it is the one that is exported, figures) of every weight that the gate tried."""
    rows: list[tuple[str, bool, tuple[str, ...]]] = []
    for item in verdict.estimates:
        name = f"{item.alpha:g}" if item.alpha else "0 (zero-shot)"
        gains = (signed(item.gain), signed(item.low)) if item.alpha else ("", "")
        cells = (number(item.accuracy), *gains, number(item.agreement), number(item.confidence))
        rows.append((name, item.alpha == verdict.alpha, cells))
    return rows


def pair_row(pair: ConfusedPair, classes: Sequence[str]) -> tuple[str, ...]:
    """True class, predicted class, images, share and share before finetuning."""
    images = number(pair.images, 0 if pair.images == round(pair.images) else 1)
    before = "–" if pair.before is None else f"{number(pair.before)} %"
    names = (shorten(classes[label], 40) for label in (pair.truth, pair.predicted))
    return *names, images, f"{number(pair.share)} %", before


def calibrations(measures: Measures) -> dict[str, Calibration]:
    """Of the arms that are drawn."""
    return {arm: measures.arms[arm].calibration for arm in ("zero_shot", "mudg") if arm in measures.arms}


def calibration_columns(measures: Measures) -> tuple[str, ...]:
    near = any(arm.top5 is not None for arm in measures.arms.values())
    return ("macro", *(("top 5",) if near else ()), "confidence", "accuracy", "ECE")


def calibration_rows(measures: Measures) -> list[tuple[str, str, tuple[str, ...]]]:
    """(arm, its name, figures)."""
    rows = []
    for arm in _in_order(measures.arms):
        one = measures.arms[arm]
        own, near = one.calibration, "top 5" in calibration_columns(measures)
        top5 = ["–" if one.top5 is None else number(one.top5)] if near else []
        cells = number(one.macro), *top5, *map(number, (own.confidence, own.accuracy, own.ece))
        rows.append((arm, arm_name(arm), cells))
    return rows


def calibration_summary(measures: Measures) -> str:
    """Which way a probability errs, so that somebody can act on it."""
    calibration = measures.arms["mudg"].calibration
    gap = round(calibration.confidence - calibration.accuracy, 1)
    if abs(gap) < 1:
        return "MUDG is well calibrated: mean confidence and accuracy differ by less than 1 point."
    way, side = ("overconfident", "above") if gap > 0 else ("underconfident", "below")
    return f"MUDG is {way}: its mean confidence is {number(abs(gap))} points {side} its accuracy."


def alpha_summary(measures: Measures) -> str:
    best = max(measures.alpha, key=lambda point: (point.single, point.alpha))
    end = measures.alpha[-1]
    scope = f"Measured on {measures.alpha_images:,} evaluation images, the same at every alpha."
    if best.alpha == end.alpha:
        return f"The finetuned weights (alpha {end.alpha:g}) are the best of these. {scope}"
    gain = number(best.single - end.single)
    return f"Alpha {best.alpha:g} is best: {gain} points above the finetuned weights. {scope}"


@dataclass(frozen=True)
class WarningView:
    summary: str
    shown: list[TargetWarning]
    folded: list[TargetWarning]
    left_out: int


def warning_view(warnings: Sequence[TargetWarning]) -> WarningView:
    """Kinds take turns for the places that are open: ninety classes with few images must not hide a leak."""
    kinds = [*WARNINGS, *sorted({n.kind for n in warnings} - set(WARNINGS))]
    queues = [queue for kind in kinds if (queue := [n for n in warnings if n.kind == kind])]
    turns = [(place, rank, n) for rank, queue in enumerate(queues) for place, n in enumerate(queue)]
    dealt = sorted(turns, key=lambda turn: turn[:2])
    first, rest = (
        sorted(part, key=lambda turn: (turn[1], turn[0]))
        for part in (dealt[:OPEN_NOTICES], dealt[OPEN_NOTICES:])
    )
    tally = ", ".join(f"{len(queue):,} {kind_words(queue[0].kind)[1]}" for queue in queues)
    return WarningView(
        summary=f"{count(len(warnings), 'warning')}: {tally}" if len(warnings) > 1 else "1 warning",
        shown=[n for _, _, n in first],
        folded=[n for _, _, n in rest[:MAX_NOTICES]],
        left_out=max(len(rest) - MAX_NOTICES, 0),
    )


def kind_words(kind: str) -> tuple[str, str]:
    """Title and tally; a kind that this version does not know keeps its own name."""
    return WARNINGS.get(kind, (shorten(kind, 60), f"of {shorten(kind, 40)}"))


def warning_numbers(warning: TargetWarning) -> Figures:
    return [
        (shorten(name.replace("_", " "), 40), number(value, 0 if value == round(value) else 3))
        for name, value in list(warning.numbers.items())[:6]
    ]


def hubness_summary(target: TargetReport) -> str:
    hubness = target.hubness
    assert hubness is not None
    moved = sum(max(c - r, 0) for c, r in zip(hubness.by_cosine, hubness.by_rank, strict=False))
    hubs = len(hubness.cosine_hubs)
    many = f"{count(hubs, 'class')} would be {'a hub' if hubs == 1 else 'hubs'}"
    named = many if hubs else "No class is a hub"
    cosine, rank = number(hubness.skew_by_cosine, 2), number(hubness.skew_by_rank, 2)
    return (
        f"{named}; {count(moved, 'image')} or more would change class. "
        f"Skew of the counts: {cosine} by cosine, {rank} by rank."
    )


def map_kinds(target: TargetReport) -> Figures:
    """(CSS classes, words) of the kinds of points that the map has."""
    assert target.map is not None
    present = set(kinds_of(target.map).tolist())
    prefix = "" if map_names(target) else "kind-"
    return [(f"{kind} {prefix}{kind}", words) for kind, words in KINDS.items() if kind in present]


def map_names(target: TargetReport) -> tuple[str, ...]:
    """Classes that have a colour; none when there are too many."""
    return target.classes if len(target.classes) <= MAX_COLOURS else ()


def target_figures(target: TargetReport) -> Figures:
    figures = [_counted(len(target.classes), "class"), (f"{sum(target.labels_after):,}", "training images")]
    if target.labels_after:
        low, high = min(target.labels_after), max(target.labels_after)
        figures.append((f"{low}" if low == high else f"{low} to {high}", "images per class"))
    figures.append((f"{sum(d.chosen for d in target.descriptors):,}", "descriptors"))
    return [*figures, _counted(len(target.seeds), "seed")]


def _counted(value: int, noun: str) -> tuple[str, str]:
    amount, _, words = count(value, noun).partition(" ")
    return amount, words


def index_figures(index: IndexReport) -> Figures:
    sizes = {"images": index.rows, "dimensions": index.dim, "cells": index.cells}
    figures = [(f"{value:,}", words) for words, value in sizes.items()]
    return [*figures, (index.code, "code"), (index.method, "method")]


def page_figures(data: ReportData) -> Figures:
    """The numbers under the headline."""
    figures = [(f"{data.index.rows:,}", "images searched")] if data.index else []
    figures.append(_counted(sum(len(target.classes) for target in data.targets), "class"))
    starts = [target.funnel[0] for target in data.targets if target.funnel]
    if len({name for name, _ in starts}) == 1:
        figures.append((f"{sum(value for _, value in starts):,}", starts[0][0]))
    figures.append((f"{sum(sum(t.labels_after) for t in data.targets):,}", "training images"))
    if data.timings:
        figures.append((duration(sum(timing.seconds for timing in data.timings)), "computing time"))
    return figures


def row_groups(comparison: Comparison) -> dict[str, list[RowScore]]:
    groups: dict[str, list[RowScore]] = {}
    for row in comparison.rows:
        groups.setdefault(row.group, []).append(row)
    return groups


def row_domains(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(domain for row in comparison.rows for domain in row.domains))


def best_mean(comparison: Comparison) -> float:
    """Of the rows that use no labels, to a tenth of a point."""
    return max((round(row.mean, 1) for row in comparison.rows if row.group != "upper bound"), default=0.0)


def gain_over_zero_shot(comparison: Comparison, row: RowScore) -> str:
    plain = comparison.row(REFERENCE)
    return signed(round(row.mean, 1) - round(plain.mean, 1)) if plain and row is not plain else ""


def interval(estimate: Estimate | None, words: Callable[[float], str]) -> str:
    return f"[{words(estimate.low)}, {words(estimate.high)}]" if estimate else ""


def comparison_summary(comparison: Comparison) -> str:
    """What the table says of the method, in a sentence: also where another row is better."""
    ours, plain = comparison.row(METHOD), comparison.row(REFERENCE)
    seeds = count(len(comparison.seeds), "seed")
    if ours is None or plain is None:
        return f"{count(len(comparison.rows), 'row')}, {seeds}."
    best = max(
        (row for row in comparison.rows if row.group != "upper bound" and row is not ours),
        key=lambda row: row.mean,
    )
    figures = f"MUDG {number(ours.mean)} %, zero-shot {number(plain.mean)} %, {seeds}."
    ranked = "is better" if best.mean > ours.mean else "is the best of the others"
    unsure = "" if best.method_gain is None or best.method_gain.certain else ", within the uncertainty"
    return f"{figures} {best.name} {ranked}: {number(best.mean)} %{unsure}."
