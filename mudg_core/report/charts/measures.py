"""How honest a classifier's confidence is, and accuracy along the way to the finetuned weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from mudg_core.evaluate.measures import BINS, Calibration
from mudg_core.report.charts.lines import HALF, WIDTH, Plot, Series
from mudg_core.report.charts.svg import bar, chart, group, line, text, ticks
from mudg_core.report.measured import AlphaPoint
from mudg_core.report.words import arm_name, count, number

HEIGHT = 300.0
_LEFT, _TOP, _FOOT = 52.0, 14.0, 40.0


def reliability(arms: Mapping[str, Calibration]) -> Markup:
    """Accuracy by confidence. On the diagonal a classifier is right as often as it says; below it, it says
    too much."""
    marks = [(value, f"{value:.0f}") for value in ticks(0, 100, 6)]
    diagonal = Series([(0.0, 0.0), (100.0, 100.0)], "ideal")
    plot = Plot(
        title="Accuracy by confidence: " + ", ".join(_error(arm, found) for arm, found in arms.items()),
        series=[diagonal, *(_answers(arm, found) for arm, found in arms.items())],
        x_ticks=marks,
        x_name="confidence, percent",
        y_ticks=[value for value, _ in marks],
        y_words=lambda value: f"{number(value, 0)} %",
        width=HALF,
        height=HEIGHT,
    )
    return plot.draw()


def _error(arm: str, found: Calibration) -> str:
    return f"{arm_name(arm)} calibration error {number(found.ece)} percent"


def _answers(arm: str, found: Calibration) -> Series:
    points = [(one.confidence, one.accuracy) for one in found.bins]
    tips = [
        f"{arm_name(arm)}: {count(one.images, 'answer')}, {number(one.confidence)} % sure, "
        f"{number(one.accuracy)} % right"
        for one in found.bins
    ]
    return Series(points, f"arm-{arm}", dots=True, tips=tips)


def confidences(arms: Mapping[str, Calibration]) -> Markup:
    """How many of the answers are given with which confidence."""
    totals = {arm: max(sum(one.images for one in found.bins), 1) for arm, found in arms.items()}
    shares = {
        arm: [(round(one.low * BINS), 100 * one.images / totals[arm]) for one in found.bins]
        for arm, found in arms.items()
    }
    levels = ticks(0, max([1.0, *(share for bins in shares.values() for _, share in bins)]), 5)
    step, foot = (HALF - _LEFT - 24) / BINS, HEIGHT - _FOOT
    scale = (foot - _TOP) / levels[-1]
    parts = [_level(value, foot - value * scale) for value in levels]
    parts += [_edge(value) for value in ticks(0, 100, 6)]
    width = step * 0.84 / max(len(arms), 1)
    for place, (arm, bins) in enumerate(shares.items()):
        for number_, share in bins:
            x = _LEFT + number_ * step + step * 0.08 + place * width
            tip = f"{arm_name(arm)}: {number(share)} % of answers"
            parts.append(bar(x, foot - share * scale, width, share * scale, f"arm-{arm}", tip, round_=1))
    parts.append(text(HALF - 16, foot + 34, "confidence, percent", "tick", "end"))
    return chart("Share of answers by confidence", HALF, HEIGHT, *parts)


def _level(value: float, y: float) -> Markup:
    label = text(_LEFT - 8, y + 4, f"{number(value, 0)} %", "tick", "end")
    return group([line((_LEFT, y), (HALF - 16, y), "grid"), label])


def _edge(value: float) -> Markup:
    x = _LEFT + value / 100 * (HALF - _LEFT - 24)
    return text(x, HEIGHT - _FOOT + 17, f"{value:.0f}", "tick", "middle")


def alpha_curve(points: Sequence[AlphaPoint]) -> Markup:
    """Accuracy with single and averaged prompts from the initial to the finetuned weights."""
    shown = [point for point in points if math.isfinite(point.single + point.averaged)]
    spread = any(point.std for point in shown)
    single = Series(
        [(point.alpha, point.single) for point in shown],
        "arm-mudg",
        dots=True,
        band=[(point.single - point.std, point.single + point.std) for point in shown] if spread else (),
        tips=[_tip(point.alpha, point.single, "single prompt") for point in shown],
    )
    averaged = Series(
        [(point.alpha, point.averaged) for point in shown],
        "arm-nearest_neighbours dashed",
        dots=True,
        tips=[_tip(point.alpha, point.averaged, "averaged prompts") for point in shown],
    )
    low, high = _range(shown)
    plot = Plot(
        title="Accuracy by alpha, single prompt: "
        + ", ".join(f"{point.alpha:g}: {number(point.single)} %" for point in shown),
        series=[averaged, single],
        x_ticks=[(value, f"{value:g}") for value in ticks(0, 1, 6)],
        x_name="share of the finetuned weights (alpha); 0 is the initial model",
        y_ticks=ticks(low, high, 5),
        y_words=lambda value: f"{number(value, 0 if value == round(value) else 1)} %",
        width=WIDTH,
    )
    return plot.draw()


def _range(points: Sequence[AlphaPoint]) -> tuple[float, float]:
    """Not from nought: a few points of difference would be a flat line."""
    lows = [min(point.single - point.std, point.averaged) for point in points]
    highs = [max(point.single + point.std, point.averaged) for point in points]
    return min(lows, default=0.0), max(highs, default=100.0)


def _tip(alpha: float, value: float, way: str) -> str:
    return f"alpha {alpha:g}, {way}: {number(value)} %"
