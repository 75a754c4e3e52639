"""Hubness: do some labels, or some images, turn up everywhere?

A label whose text is near to everything takes images from the others when cosines decide, and cannot when
ranks do. Both are counted on the same hits, so that the report can show what ranks are for.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mudg_core.dataset.label import pseudo_label

Int64 = NDArray[np.int64]

HUBNESS = "hubness.json"
HUB = 1.5  # times the even share of images, from which on a label is called a hub
SHOWN = 20


@dataclass(frozen=True)
class Retrieved:
    """An image and how many queries, and how many labels, retrieved it."""

    row: int
    queries: int
    labels: int


@dataclass(frozen=True)
class Hubness:
    """Images for each label by both rules, and which images everybody finds."""

    by_rank: tuple[int, ...]
    by_cosine: tuple[int, ...]
    skew_by_rank: float
    skew_by_cosine: float
    cosine_hubs: tuple[int, ...]  # labels that are hubs by cosine and not by rank
    occurrence_skew: float  # of the number of queries that retrieved an image
    most_retrieved: tuple[Retrieved, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Hubness:
        body = json.loads(text)
        lists = {name: tuple(body[name]) for name in ("by_rank", "by_cosine", "cosine_hubs")}
        images = tuple(Retrieved(**image) for image in body["most_retrieved"])
        return cls(**{**body, **lists, "most_retrieved": images})


def measure_hubness(hits: pa.Table, labels: int, shown: int = SHOWN) -> Hubness:
    """Of the hits that labels were made from; `labels` is how many there are, with images or without."""
    rank, cosine = (_counts(hits, method, labels) for method in ("rank", "cosine"))
    rows, occurrence = np.unique(hits.column("row").to_numpy(), return_counts=True)
    return Hubness(
        by_rank=tuple(rank.tolist()),
        by_cosine=tuple(cosine.tolist()),
        skew_by_rank=skewness(rank),
        skew_by_cosine=skewness(cosine),
        cosine_hubs=tuple(np.flatnonzero(hubs(cosine) & ~hubs(rank)).tolist()),
        occurrence_skew=skewness(occurrence),
        most_retrieved=tuple(_retrieved(hits, rows[np.argsort(-occurrence, kind="stable")[:shown]])),
    )


def hubs(counts: Int64) -> NDArray[np.bool_]:
    """Which labels have far more images than if all had as many."""
    return np.asarray(counts * len(counts) > HUB * counts.sum(), dtype=np.bool_)


def skewness(values: NDArray[np.integer]) -> float:
    """The third standardised moment: 0 for even counts, the higher the more a few stand out."""
    centred = values - np.mean(values) if len(values) else np.zeros(1)
    spread = float(np.mean(centred**2))
    return float(np.mean(centred**3)) / spread**1.5 if spread > 0 else 0.0


def _counts(hits: pa.Table, method: str, labels: int) -> Int64:
    labelled = pseudo_label(hits, method, 0, 0).column("label").to_numpy()
    return np.bincount(labelled, minlength=labels)


def _retrieved(hits: pa.Table, rows: Int64) -> list[Retrieved]:
    some = hits.filter(pa.array(np.isin(hits.column("row").to_numpy(), rows)))
    row, label = some.column("row").to_numpy(), some.column("label").to_numpy()
    return [
        Retrieved(one, int((row == one).sum()), len(np.unique(label[row == one]))) for one in rows.tolist()
    ]
