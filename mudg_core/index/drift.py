"""Whether new shards still look like what the centroids were trained on.

New shards are added to an index without training again, so its cells slowly stop fitting. The two objectives
of Eq. 3 notice: how far images lie from the centroids of their cells, and how many texts have another nearest
centroid than their images.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mudg_core.errors import DataError

TOLERANCE = 0.10


@dataclass(frozen=True)
class Drift:
    """Objectives on new shards over those of training; above 1 is worse."""

    kmeans: float
    cross_modal: float
    tolerance: float

    @property
    def retrain(self) -> bool:
        return max(self.kmeans, self.cross_modal) > 1 + self.tolerance

    def __str__(self) -> str:
        """The verdict with its reasons, in one sentence."""
        far = _change(self.kmeans, "farther", "nearer", "as far")
        many = _change(self.cross_modal, "more", "fewer", "as many")
        changes = (
            f"images lie {far} from their centroids (L_kmeans) and "
            f"{many} texts miss the cell of their image (L_cross-modal)"
        )
        allowed = f"the {100 * self.tolerance:g} % allowed"
        verdict = (
            f"beyond {allowed}: train again" if self.retrain else f"within {allowed}: the centroids still fit"
        )
        return f"On the new shards {changes}, {verdict}."


def drift(training: tuple[float, float], new: tuple[float, float], *, tolerance: float = TOLERANCE) -> Drift:
    """Compares (L_kmeans, L_cross-modal) of new shards with those at the end of training."""
    if not all(math.isfinite(value) and value >= 0 for value in (*training, *new)):
        raise DataError(
            what=f"objectives that are neither distances nor shares of texts: {training} in training, "
            f"{new} on new shards",
            fix="embed the new shards again, or train again",
        )
    kmeans, cross_modal = (_ratio(now, then) for now, then in zip(new, training, strict=True))
    return Drift(kmeans, cross_modal, tolerance)


def _ratio(now: float, then: float) -> float:
    """A training set of one point a cell has an objective of nothing, beside which anything is infinite."""
    if then == 0:
        return 1.0 if now == 0 else math.inf
    return now / then


def _change(ratio: float, more: str, less: str, same: str) -> str:
    if math.isinf(ratio):
        return f"infinitely {more}"
    if abs(ratio - 1) < 0.0005:
        return same
    return f"{100 * abs(ratio - 1):.1f} % {more if ratio > 1 else less}"
