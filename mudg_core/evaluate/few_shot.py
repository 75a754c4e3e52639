"""A few labelled images of each class: what an upper bound is trained on, and nothing else ever is."""

from __future__ import annotations

import hashlib
from bisect import insort
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from mudg_core.evaluate.images import Labelled, Source


def few_shot(source: Source, k: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """(label, encoded image) of k training images of each class, or all of a class that has fewer.

    A hash of the seed and of the file's own name says who is drawn: the same wherever the dataset lies, and
    only k names of a class are held.
    """
    drawn: dict[int, list[tuple[bytes, str, Labelled]]] = {}
    for image in source.listed("train"):
        drawn_by = f"{seed}\0{image.label}\0{Path(image.name).name}"
        lot = hashlib.blake2b(drawn_by.encode(), digest_size=16).digest()
        best = drawn.setdefault(image.label, [])
        insort(best, (lot, image.name, image), key=itemgetter(0, 1))
        del best[k:]
    for label in sorted(drawn):
        for _, _, image in drawn[label]:
            yield label, image.read()
