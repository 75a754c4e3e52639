"""The parts of a target that only some runs have, as the template needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mudg_core.dataset.warning import TargetWarning
from mudg_core.report import charts
from mudg_core.report.charts.pairs import MAX_HUBS
from mudg_core.report.charts.scatter import KINDS, MAX_COLOURS, kinds_of
from mudg_core.report.data import TargetReport
from mudg_core.report.words import count, number, shorten

MAX_NOTICES = 500
OPEN_NOTICES = 6
NAMED = 12  # classes that one card names
TITLES = {  # the gravest first
    "leaks": "Evaluation images in the corpus",
    "absent": "The corpus seems to lack this",
    "twins": "Nearly one class",
    "few": "Few images",
    "descriptors": "Descriptors that Eq. 4 did not choose",
    "unmatched": "Classes of the evaluation data that are left out",
    "unmeasured": "Not evaluated",
}
TALLY = {
    "leaks": "of leaked images",
    "absent": "of absent classes",
    "twins": "of classes that are nearly one",
    "few": "of few images",
    "descriptors": "of descriptors chosen by the tie-break",
    "unmatched": "of evaluation data left out",
    "unmeasured": "of classes without evaluation images",
}


@dataclass(frozen=True)
class WarningCard:
    """One warning; `kind` is a CSS class and therefore one that we know."""

    kind: str
    title: str
    names: tuple[str, ...]
    more: int
    message: str
    numbers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class WarningView:
    summary: str
    shown: tuple[WarningCard, ...]
    folded: tuple[WarningCard, ...]
    left_out: int


def warning_view(warnings: Sequence[TargetWarning]) -> WarningView | None:
    """Kinds take turns for the places that are open: ninety classes with few images must not hide a leak."""
    if not warnings:
        return None
    kinds = [*TITLES, *sorted({n.kind for n in warnings} - set(TITLES))]
    queues = [queue for kind in kinds if (queue := [n for n in warnings if n.kind == kind])]
    turns = [(place, rank, n) for rank, queue in enumerate(queues) for place, n in enumerate(queue)]
    dealt = sorted(turns, key=lambda turn: turn[:2])
    first = sorted(dealt[:OPEN_NOTICES], key=lambda turn: (turn[1], turn[0]))
    rest = sorted(dealt[OPEN_NOTICES:], key=lambda turn: (turn[1], turn[0]))
    tally = ", ".join(f"{len(queue):,} {_tally(queue[0].kind)}" for queue in queues)
    return WarningView(
        summary=f"{count(len(warnings), 'warning')}: {tally}" if len(warnings) > 1 else "1 warning",
        shown=tuple(_card(n) for _, _, n in first),
        folded=tuple(_card(n) for _, _, n in rest[:MAX_NOTICES]),
        left_out=max(len(rest) - MAX_NOTICES, 0),
    )


def _title(kind: str) -> str:
    return TITLES.get(kind, shorten(kind, 60))


def _tally(kind: str) -> str:
    return TALLY.get(kind, f"of {shorten(kind, 40)}")


def _card(warning: TargetWarning) -> WarningCard:
    return WarningCard(
        kind=warning.kind if warning.kind in TITLES else "other",
        title=_title(warning.kind),
        names=tuple(shorten(name, 60) for name in warning.classes[:NAMED]),
        more=max(len(warning.classes) - NAMED, 0),
        message=shorten(warning.message, 600),
        numbers=tuple(
            (shorten(name.replace("_", " "), 40), number(value, 0 if value == round(value) else 3))
            for name, value in list(warning.numbers.items())[:6]
        ),
    )


@dataclass(frozen=True)
class HubnessView:
    chart: Markup
    words: str
    cut: str


def hubness_view(target: TargetReport) -> HubnessView | None:
    found = target.hubness
    if found is None or not found.by_rank:
        return None
    moved = sum(max(c - r, 0) for c, r in zip(found.by_cosine, found.by_rank, strict=False))
    many = len(found.cosine_hubs)
    hubs = (
        f"{count(many, 'class')} would be {'a hub' if many == 1 else 'hubs'}" if many else "No class is a hub"
    )
    cosine, rank = number(found.skew_by_cosine, 2), number(found.skew_by_rank, 2)
    words = (
        f"{hubs}; {count(moved, 'image')} or more would change sides. "
        f"Skew of the counts: {cosine} by cosine, {rank} by rank."
    )
    size = len(target.classes)
    cut = f"Showing {MAX_HUBS} of {size:,} classes, those that differ most." if size > MAX_HUBS else ""
    return HubnessView(charts.hubness(target.classes, found), words, cut)


@dataclass(frozen=True)
class MapView:
    chart: Markup
    classes: tuple[tuple[str, str], ...]  # (CSS class, name); empty when there are too many to colour
    kinds: tuple[tuple[str, str], ...]  # (CSS classes, words)
    cut: str


def map_view(target: TargetReport) -> MapView | None:
    points = target.map
    if points is None or not len(points.row):
        return None
    names = target.classes if len(target.classes) <= MAX_COLOURS else ()
    seen = set(kinds_of(points).tolist())
    by_kind = "" if names else "kind-"
    kinds = tuple((f"{kind} {by_kind}{kind}", KINDS[kind]) for kind in KINDS if kind in seen)
    shown = len(points.row)
    cut = (
        f"Showing {shown:,} of {points.images:,} candidates, as many of each class."
        if shown < points.images
        else ""
    )
    classes = tuple((f"tone-{label}", name) for label, name in enumerate(names))
    return MapView(charts.class_map(points, target.classes), classes, kinds, cut)
