"""What is known of a training set where the world is drawn: which labels are right, what is there twice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.corpus.demo.world import DemoWorld, Truth
from mudg_core.encode.shard import EmbeddingShard
from mudg_core.index.vectors import Float32, Int64, normalised

Bool = NDArray[np.bool_]
NUMBER = re.compile(r"-(\d+)\.jpg$")  # of a picture, at the end of its address


def drawn_as(shards: Sequence[EmbeddingShard]) -> dict[int, int]:
    """Which picture of the world each row is. They differ: a link that was dead has no row."""
    numbers: dict[int, int] = {}
    for shard in shards:
        urls = shard.metadata().column("url").to_pylist()
        numbers |= {
            row: int(NUMBER.findall(url)[0]) for row, url in zip(shard.rows.tolist(), urls, strict=True)
        }
    return numbers


@dataclass(frozen=True)
class Oracle:
    """The truth about rows of a demo corpus, and the kinds that a target's classes mean."""

    world: DemoWorld
    drawn: Mapping[int, int]
    kinds: Sequence[str]

    def truths(self, rows: Int64) -> list[Truth]:
        return [self.world.truth(self.drawn[row]) for row in rows.tolist()]

    def right(self, rows: Int64, labels: Int64) -> Bool:
        """Whether each image shows what its label says; a hub, which shows everything, never does."""
        meant = [self.kinds[label] for label in labels.tolist()]
        found = [truth.kind for truth in self.truths(rows)]
        return np.array([kind == name for kind, name in zip(found, meant, strict=True)], dtype=np.bool_)

    def precision(self, rows: Int64, labels: Int64) -> dict[str, float]:
        """Of each class that has images, and `all` of them together."""
        right = self.right(rows, labels)
        by_class = {self.kinds[i]: float(right[labels == i].mean()) for i in np.unique(labels).tolist()}
        return {"all": float(right.mean()), **by_class}

    def duplicate_rate(self, rows: Int64, labels: Int64) -> float:
        """Share of images that are near copies of another one with the same label."""
        copies = np.array([-1 if t.duplicate_of is None else t.duplicate_of for t in self.truths(rows)])
        pairs = np.stack([labels, copies], axis=1)[copies >= 0]
        return (len(pairs) - len(np.unique(pairs, axis=0))) / max(1, len(rows))

    def styles(self, rows: Int64, labels: Int64) -> float:
        """How many styles a class has among its images, on average."""
        styles = np.array([truth.style for truth in self.truths(rows)])
        return float(np.mean([len(np.unique(styles[labels == label])) for label in np.unique(labels)]))


def coverage(candidates: Float32, labels: Int64, chosen: Bool) -> float:
    """How near the nearest chosen image of its label is to a candidate, as a mean cosine: 1 if all were."""
    points = normalised(candidates)
    found = np.zeros(len(points), dtype=np.float32)
    for label in np.unique(labels):
        own = labels == label
        if (own & chosen).any():
            found[own] = (points[own] @ points[own & chosen].T).max(axis=1)
    return float(found.mean())
