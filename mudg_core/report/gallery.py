"""Which images the page embeds, and the words for each.

Every image costs bytes in a file that people mail around, so three limits hold whatever the run was: images
on the page (MAX_IMAGES), bytes of one image (MAX_IMAGE_BYTES) and of all (MAX_TOTAL_BYTES; previews repeat
a few). Classes take turns, so that with a thousand of them each still shows its best image, and the page says
what it leaves out.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from mudg_core.report.data import GalleryImage, TargetReport
from mudg_core.report.words import number, sentence, shorten

MAX_IMAGES = 1500
MAX_IMAGE_BYTES = 100_000
MAX_TOTAL_BYTES = 16_000_000
MAX_CHOSEN, MAX_REJECTED = 32, 12  # of one class
MAX_PREVIEWS = 36  # of one target
CHOSEN_SHARE = 0.85  # of the cards, when there are more of both kinds than fit
CHOSEN = "chosen"
_KINDS = {b"\xff\xd8\xff": "jpeg", b"\x89PNG": "png", b"RIFF": "webp"}


@dataclass(frozen=True)
class ClassGallery:
    """The images of one class that are shown, and how many there are in truth."""

    anchor: str
    name: str
    chosen: tuple[GalleryImage, ...]
    chosen_total: int
    rejected: tuple[GalleryImage, ...]
    rejected_total: int
    accuracy: str


def galleries(targets: Sequence[TargetReport]) -> list[tuple[ClassGallery, ...]]:
    """The galleries of each target, within the limits of the page."""
    previews = sum(min(len(target.classes), MAX_PREVIEWS) for target in targets)
    shown = _affordable(targets, max(MAX_IMAGES - previews, 0))
    return [tuple(_classes(target, place, shown)) for place, target in enumerate(targets)]


def previews(classes: Sequence[ClassGallery]) -> list[tuple[ClassGallery, GalleryImage]]:
    """The best chosen image of each class, for a glance."""
    best = [(one, one.chosen[0]) for one in classes if one.chosen and data_uri(one.chosen[0].image)]
    return best[:MAX_PREVIEWS]


def shown_images(classes: Sequence[ClassGallery]) -> str:
    """What the gallery leaves out, so that nobody takes a sample for the whole."""
    chosen, total = sum(len(c.chosen) for c in classes), sum(c.chosen_total for c in classes)
    rejected, tried = sum(len(c.rejected) for c in classes), sum(c.rejected_total for c in classes)
    return f"Showing {chosen:,} of {total:,} chosen and {rejected:,} of {tried:,} rejected images."


def _affordable(targets: Sequence[TargetReport], budget: int) -> set[int]:
    """Identities of the images to show: most of them chosen ones, and each class has a turn in each round."""
    classes = [both for target in targets for both in _by_class(target).values()]
    chosen = list(_in_turns([taken[:MAX_CHOSEN] for taken, _ in classes]))
    rejected = list(_in_turns([refused[:MAX_REJECTED] for _, refused in classes]))
    first = round(budget * CHOSEN_SHARE)
    shown: set[int] = set()
    spent = 0
    for image in [*chosen[:first], *rejected, *chosen[first:]]:
        size = len(image.image)
        if len(shown) < budget and size <= MAX_IMAGE_BYTES and spent + size <= MAX_TOTAL_BYTES:
            shown.add(id(image))
            spent += size
    return shown


def _in_turns(queues: Sequence[Sequence[GalleryImage]]) -> Iterator[GalleryImage]:
    for turn in range(max((len(queue) for queue in queues), default=0)):
        yield from (queue[turn] for queue in queues if turn < len(queue))


def _by_class(target: TargetReport) -> dict[int, tuple[list[GalleryImage], list[GalleryImage]]]:
    """(chosen, rejected) of each label, best rank first; the order of the gallery does not matter."""
    both: dict[int, tuple[list[GalleryImage], list[GalleryImage]]] = {}
    for image in sorted(target.gallery, key=lambda i: (i.label, i.rank, -i.cosine, i.row)):
        both.setdefault(image.label, ([], []))[image.outcome != CHOSEN].append(image)
    return both


def _classes(target: TargetReport, place: int, shown: set[int]) -> Iterator[ClassGallery]:
    for label, (taken, refused) in _by_class(target).items():
        inside = 0 <= label < len(target.classes)
        name = target.classes[label] if inside else f"class {label}"
        after = target.labels_after[label] if 0 <= label < len(target.labels_after) else 0
        yield ClassGallery(
            anchor=f"t{place}c{label}",
            name=name,
            chosen=tuple(image for image in taken if id(image) in shown),
            chosen_total=max(after, len(taken)),
            rejected=tuple(image for image in refused if id(image) in shown),
            rejected_total=len(refused),
            accuracy=_accuracy(target, label),
        )


def _accuracy(target: TargetReport, label: int) -> str:
    plain, ours = (target.class_accuracy.get(arm, ()) for arm in ("zero_shot", "mudg"))
    if not 0 <= label < min(len(plain), len(ours)):
        return ""
    return f"{number(plain[label], 0)} → {number(ours[label], 0)} %"


def alt(image: GalleryImage, name: str) -> str:
    """What a screen reader says."""
    return shorten(f"{name}, {image.outcome}: {image.caption or 'no caption'}", 200)


def tip(image: GalleryImage, min_cosine: float | None) -> str:
    fresh = "" if image.fresh_cosine is None else f"\nfresh cosine {number(image.fresh_cosine, 3)}"
    return (
        f"query: {image.query}\nrank {image.rank}, cosine {number(image.cosine, 3)}{fresh}\n"
        f"{shorten(sentence(image, min_cosine), 300)}\nrow {image.row}\n"
        f"{shorten(image.caption, 300)}\n{shorten(image.url, 300)}"
    )


def data_uri(image: bytes) -> str:
    """The image as an address that loads nothing; empty for bytes that are no picture we know."""
    kind = next((kind for start, kind in _KINDS.items() if image.startswith(start)), "")
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}" if kind else ""


def safe_link(url: str) -> str:
    """The address when it is plain http(s), else nothing: a crawled `javascript:` must never be clickable."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable()
    except ValueError:
        return ""
    return url if fine and " " not in url and len(url) <= 2000 else ""
