"""Two counts for each class, one above the other: what it would get by cosine, and what it gets by rank."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from mudg_core.dataset.pseudo_labels import Hubness
from mudg_core.report.charts.svg import bar, chart, group, name_room, tag, text
from mudg_core.report.words import count, shorten

WIDTH, STEP = 800.0, 36.0
MAX_HUBS = 14


def hubness(classes: Sequence[str], found: Hubness) -> Markup:
    """The classes that the two rules differ on most, those that cosines favour first."""
    rows = list(zip(found.by_cosine, found.by_rank, range(len(classes)), strict=False))
    greatest = sorted(rows, key=lambda row: (-abs(row[0] - row[1]), row[2]))[:MAX_HUBS]
    shown = sorted(greatest, key=lambda row: (row[1] - row[0], row[2]))
    most = max([1, *(max(cosine, rank) for cosine, rank, _ in shown)])
    room = name_room([classes[label] for _, _, label in shown]) + 34
    scale = (WIDTH - room - 60) / most
    parts = [
        _pair(cosine, rank, classes[label], label in found.cosine_hubs, room, STEP * place, scale)
        for place, (cosine, rank, label) in enumerate(shown)
    ]
    title = f"Images by cosine and by rank, {count(len(shown), 'class')} with the greatest differences"
    return chart(title, WIDTH, STEP * len(shown) + 2, *parts)


def _pair(cosine: int, rank: int, name: str, hub: bool, room: float, y: float, scale: float) -> Markup:
    tip = tag("title", f"{name}: {cosine:,} by cosine, {rank:,} by rank{', a hub' if hub else ''}")
    end = room - 12
    mark = [text(end, y + 20, "hub", "hub", "end")] if hub else []
    words = text(end - (30 if hub else 0), y + 20, shorten(name, 24), "name", "end")
    return group(
        [
            tip,
            words,
            *mark,
            bar(room, y + 3, cosine * scale, 12, "arm-nearest_neighbours"),
            text(room + cosine * scale + 6, y + 13, f"{cosine:,}", "value"),
            bar(room, y + 17, rank * scale, 12, "arm-mudg"),
            text(room + rank * scale + 6, y + 27, f"{rank:,}", "value strong"),
        ]
    )
