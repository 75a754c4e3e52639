"""A few labelled images of each class, for an upper bound: what a student learns from the real thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from mudg_core.corpus.demo.targets import TARGET_BY_NAME, evaluation_images
from mudg_core.corpus.shards import encode_jpeg
from mudg_core.dataset.build import CHOSEN, Filled
from mudg_core.dataset.training_set import write_training_set
from mudg_core.evaluate.images import DEMO, DEMO_SEED, Source


def has_shots(source: Source) -> bool:
    """Whether labelled images are known that are no evaluation images."""
    return source.location.startswith(DEMO)


def few_shot(source: Source, shots: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """(label, encoded image): `shots` of each class, spread evenly over the domains of a target.

    Those of the demo are drawn as its evaluation images are, by another seed.
    """
    target = TARGET_BY_NAME[source.location.removeprefix(DEMO)]
    for place, domain in enumerate(target.domains):
        share = len(range(place, shots, len(target.domains)))
        for image, label in evaluation_images(target, domain, share, DEMO_SEED + 1 + seed):
            yield label, encode_jpeg(image)


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
