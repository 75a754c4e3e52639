"""From data to what the template lays out: charts drawn, numbers in words, long lists cut with a count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mudg_core.report import charts
from mudg_core.report.charts.bars import MAX_DOMAINS, MAX_ROWS
from mudg_core.report.charts.lists import MAX_GAINS
from mudg_core.report.data import Descriptor, IndexReport, ReportData, TargetReport
from mudg_core.report.gallery import Card, ClassGallery, galleries, previews
from mudg_core.report.gate import GateView, gate_view
from mudg_core.report.measured_view import MeasuresView, measures_view
from mudg_core.report.panels import (
    HubnessView,
    MapView,
    WarningView,
    hubness_view,
    map_view,
    warning_view,
)
from mudg_core.report.words import ARMS, Verdict, arm_name, count, duration, number, summary, verdict

MAX_DESCRIPTORS = 40
WORST = 5
MAX_NOTES = 6


@dataclass(frozen=True)
class Figure:
    """One key number."""

    value: str
    words: str


@dataclass(frozen=True)
class Row:
    """One arm of the accuracy table; the best value of each column is marked."""

    arm: str
    name: str
    mean: str
    std: str
    cells: tuple[tuple[str, bool], ...]
    best: bool


@dataclass(frozen=True)
class TargetView:
    """One target as the template needs it; an empty chart means that the run had nothing to show."""

    data: TargetReport
    anchor: str
    verdict: Verdict
    figures: tuple[Figure, ...]
    domains: tuple[str, ...]
    rows: tuple[Row, ...]
    accuracy: Markup
    arms: tuple[tuple[str, str], ...]
    cut_domains: str
    gains: Markup
    cut_gains: str
    lost: int
    labels: Markup
    cut_labels: str
    descriptors: Markup
    chosen: tuple[Descriptor, ...]
    chosen_total: int
    worst: tuple[Descriptor, ...]
    funnel: Markup
    outcomes: Markup
    legend: list[tuple[str, str, str, str]]
    training: Markup
    galleries: tuple[ClassGallery, ...]
    previews: list[tuple[ClassGallery, Card]]
    shown: str
    warnings: WarningView | None
    hubness: HubnessView | None
    map: MapView | None
    measures: MeasuresView | None
    gate: GateView | None


def target_views(data: ReportData) -> list[TargetView]:
    every = zip(data.targets, galleries(data.targets), strict=True)
    return [_target(target, place, classes) for place, (target, classes) in enumerate(every)]


def _target(target: TargetReport, place: int, classes: tuple[ClassGallery, ...]) -> TargetView:
    empty = Markup()
    domains = tuple(dict.fromkeys(d for score in target.scores.values() for d in score.domains))
    plain, ours = (target.class_accuracy.get(arm, ()) for arm in ("zero_shot", "mudg"))
    chosen = tuple(d for d in target.descriptors if d.chosen)
    rest = tuple(d for d in target.descriptors if not d.chosen)
    size = len(target.classes)
    return TargetView(
        data=target,
        anchor=f"t{place}",
        verdict=verdict(target),
        figures=tuple(_figures(target)),
        domains=domains,
        rows=tuple(_rows(target, domains)),
        accuracy=charts.accuracy(target.scores) if target.scores else empty,
        arms=tuple((arm.removesuffix("_averaged"), arm_name(arm)) for arm in charts.charted(target.scores)),
        cut_domains=_cut(MAX_DOMAINS, len(domains), "domains; the table has all"),
        gains=charts.class_gains(target.classes, plain, ours) if plain and ours else empty,
        cut_gains=_cut(MAX_GAINS, size, "classes: the greatest gains and the greatest losses"),
        lost=sum(b < a for a, b in zip(plain, ours, strict=False)),
        labels=charts.labels(target.classes, target.labels_before, target.labels_after) if size else empty,
        cut_labels=_cut(MAX_ROWS, size, "classes: those with the most and with the fewest images"),
        descriptors=charts.descriptor_losses(target.descriptors, target.groups)
        if target.descriptors
        else empty,
        chosen=chosen[:MAX_DESCRIPTORS],
        chosen_total=len(chosen),
        worst=rest[-WORST:],
        funnel=charts.funnel(target.funnel) if target.funnel else empty,
        outcomes=charts.outcomes(target.outcomes) if target.outcomes else empty,
        legend=charts.outcome_legend(target.outcomes),
        training=charts.training(target.losses) if any(target.losses) else empty,
        galleries=classes,
        previews=previews(classes),
        shown=_shown(target, classes),
        warnings=warning_view(target.warnings),
        hubness=hubness_view(target),
        map=map_view(target),
        measures=measures_view(target),
        gate=gate_view(target.verdicts, target.seeds),
    )


def _cut(limit: int, total: int, words: str) -> str:
    return f"Showing {limit} of {total:,} {words}." if total > limit else ""


def _shown(target: TargetReport, classes: Sequence[ClassGallery]) -> str:
    """What the gallery leaves out, so that nobody takes a sample for the whole."""
    chosen, total = sum(len(c.chosen) for c in classes), sum(c.chosen_total for c in classes)
    refused, tried = sum(len(c.rejected) for c in classes), sum(c.rejected_total for c in classes)
    return f"Showing {chosen:,} of {total:,} chosen and {refused:,} of {tried:,} rejected images."


def _figures(target: TargetReport) -> list[Figure]:
    images = sum(target.labels_after)
    found = [Figure(f"{len(target.classes):,}", "class" if len(target.classes) == 1 else "classes")]
    found.append(Figure(f"{images:,}", "training images"))
    if target.labels_after:
        low, high = min(target.labels_after), max(target.labels_after)
        found.append(Figure(f"{low}" if low == high else f"{low} to {high}", "images per class"))
    found.append(Figure(f"{sum(d.chosen for d in target.descriptors):,}", "descriptors"))
    found.append(Figure(f"{len(target.seeds):,}", "seed" if len(target.seeds) == 1 else "seeds"))
    return found


def _rows(target: TargetReport, domains: Sequence[str]) -> list[Row]:
    """Known arms in their usual order, then any others."""
    known = [arm for arm in ARMS if arm in target.scores]
    arms = known + sorted(set(target.scores) - set(known))
    best = [_best(target.scores[arm].domains.get(d, math.nan) for arm in arms) for d in domains]
    top = _best(target.scores[arm].mean for arm in arms)
    rows = []
    for arm in arms:
        score = target.scores[arm]
        values = [score.domains.get(d, math.nan) for d in domains]
        cells = tuple((number(v), number(v) == b) for v, b in zip(values, best, strict=True))
        spread = number(score.std) if score.std else ""
        rows.append(
            Row(
                arm.removesuffix("_averaged"),
                arm_name(arm),
                number(score.mean),
                spread,
                cells,
                number(score.mean) == top,
            )
        )
    return rows


def _best(values: Iterable[float]) -> str:
    finite = [value for value in values if math.isfinite(value)]
    return number(max(finite)) if finite else ""


@dataclass(frozen=True)
class IndexView:
    """The shared index."""

    data: IndexReport
    figures: tuple[Figure, ...]
    recall: Markup
    kmeans: Markup
    cross_modal: Markup


def index_view(index: IndexReport | None) -> IndexView | None:
    if index is None:
        return None
    sizes = {"images": index.rows, "dimensions": index.dim, "cells": index.cells}
    figures = (
        *(Figure(f"{value:,}", words) for words, value in sizes.items()),
        Figure(index.code, "code"),
        Figure(index.method, "method"),
    )
    recall = charts.recall(index.recall_at_1) if index.recall_at_1 else Markup()
    curves = [Markup(), Markup()]
    if index.objectives:
        kmeans, cross_modal = zip(*index.objectives, strict=True)
        curves = [
            charts.objective(kmeans, "k-means objective by iteration", "arm-zero_shot"),
            charts.objective(cross_modal, "Cross-modal loss by iteration", "arm-mudg", percent=True),
        ]
    return IndexView(index, figures, recall, *curves)


def page_figures(data: ReportData) -> list[Figure]:
    """The numbers under the headline."""
    found = [Figure(f"{data.index.rows:,}", "images searched")] if data.index else []
    classes = sum(len(target.classes) for target in data.targets)
    found.append(Figure(f"{classes:,}", count(classes, "class").split()[-1]))
    starts = [target.funnel[0] for target in data.targets if target.funnel]
    if len({name for name, _ in starts}) == 1:
        found.append(Figure(f"{sum(value for _, value in starts):,}", starts[0][0]))
    found.append(Figure(f"{sum(sum(t.labels_after) for t in data.targets):,}", "training images"))
    if data.timings:
        found.append(Figure(duration(sum(timing.seconds for timing in data.timings)), "of computing"))
    return found


def headline(data: ReportData, views: Sequence[TargetView]) -> tuple[tuple[str, str], ...]:
    """One target: its result. Several: how many of them were won; the cards below have the numbers."""
    if len(views) == 1:
        return views[0].verdict.pieces(views[0].data.name)
    return ((summary(data.targets, {view.anchor: view.verdict for view in views}), ""),)
