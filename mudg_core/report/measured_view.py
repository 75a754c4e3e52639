"""Confusions, confidence and the way between the weights, as the template lays them out."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from mudg_core.report import charts
from mudg_core.report.data import TargetReport
from mudg_core.report.measured import OURS, PLAIN, AlphaPoint, ConfusedPair, Measures
from mudg_core.report.words import ARMS, arm_name, number, shorten, signed

MAX_PAIRS = 12
NAME = 40


@dataclass(frozen=True)
class PairRow:
    truth: str
    predicted: str
    images: str
    share: str
    before: str


@dataclass(frozen=True)
class MeasureRow:
    arm: str
    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class MeasuresView:
    """An empty chart means that there is nothing to show."""

    pairs: tuple[PairRow, ...]
    cut_pairs: str
    columns: tuple[str, ...]
    rows: tuple[MeasureRow, ...]
    said: str
    reliability: Markup
    confidences: Markup
    alpha: Markup
    alpha_words: str


def measures_view(target: TargetReport) -> MeasuresView | None:
    found = target.measures
    if found is None:
        return None
    shown = {arm: found.arms[arm].calibration for arm in (PLAIN, OURS) if arm in found.arms}
    listed = len(found.confusions)
    near = any(arm.top5 is not None for arm in found.arms.values())
    return MeasuresView(
        pairs=tuple(_pair(one, target.classes) for one in found.confusions[:MAX_PAIRS]),
        cut_pairs=f"Showing {MAX_PAIRS} of {listed:,} pairs." if listed > MAX_PAIRS else "",
        columns=("macro", *(("top 5",) if near else ()), "says", "is right", "error"),
        rows=tuple(_rows(found, near)),
        said=_said(found),
        reliability=charts.reliability(shown),
        confidences=charts.confidences(shown),
        alpha=charts.alpha_curve(found.alpha) if found.alpha else Markup(),
        alpha_words=_best(found.alpha, found.alpha_images),
    )


def _pair(one: ConfusedPair, classes: tuple[str, ...]) -> PairRow:
    truth, predicted = (shorten(classes[label], NAME) for label in (one.truth, one.predicted))
    images = number(one.images, 0 if one.images == round(one.images) else 1)
    before = "" if one.before is None else f"{number(one.before)} %"
    return PairRow(truth, predicted, images, f"{number(one.share)} %", before)


def _rows(found: Measures, near: bool) -> list[MeasureRow]:
    known = [arm for arm in ARMS if arm in found.arms]
    rows = []
    for arm in (*known, *sorted(set(found.arms) - set(known))):
        one = found.arms[arm]
        top = [] if not near else ["" if one.top5 is None else number(one.top5)]
        sure = one.calibration
        cells = number(one.macro), *top, *map(number, (sure.confidence, sure.accuracy, sure.ece))
        rows.append(MeasureRow(arm, arm_name(arm), cells))
    return rows


def _said(found: Measures) -> str:
    """Which way a probability errs, so that somebody can act on it."""
    sure = found.arms[OURS].calibration
    gap = round(sure.confidence - sure.accuracy, 1)
    if abs(gap) < 1:
        return "All in all, the probabilities of MUDG can be taken at their word."
    way = "too sure of itself" if gap > 0 else "surer than it says"
    return f"All in all, MUDG is {way}: {signed(gap)} points between what it says and what is right."


def _best(points: tuple[AlphaPoint, ...], images: int) -> str:
    if not points:
        return ""
    best, end = max(points, key=lambda point: (point.single, point.alpha)), points[-1]
    scope = f"Measured on {images:,} evaluation images, the same at every point."
    if best.alpha == end.alpha:
        return f"The finetuned weights are the best of these. {scope}"
    more = number(best.single - end.single)
    return f"At alpha {best.alpha:g} accuracy is {more} points above that of the finetuned weights. {scope}"
