"""A few labelled images of each class: the row `few-shot` is trained on them, and nothing else ever is."""

from __future__ import annotations

import hashlib
from bisect import insort
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

import pyarrow as pa

from mudg_core.dataset.fetch_filter_refill import CHOSEN, Filled
from mudg_core.dataset.training_set import write_training_set
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


def write_shots(images: Iterable[tuple[int, bytes]], out: Path) -> list[int]:
    """As a training set, so that the same training takes it; returns the labels."""
    labels, pictures = [], {}
    for row, (label, image) in enumerate(images):
        labels.append(label)
        pictures[row] = image
    columns = {"row": range(len(labels)), "label": labels, "query": labels}
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    table = table.append_column("outcome", pa.array([CHOSEN] * len(labels)))
    links = {row: {"url": "", "caption": ""} for row in pictures}
    write_training_set(Filled(table, pictures, len(labels), {}, 1), links, out)
    return labels
