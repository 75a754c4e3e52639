"""How much an index finds, and what it reads to find it.

Recall alone says nothing: an index that reads everything finds everything. So each measurement is a point,
recall against vectors read, and every recall carries the interval that its number of queries allows. CPU time
is measured beside it, and stays out of whatever is hashed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mudg_core.errors import DataError
from mudg_core.index.exact import sums_in_order
from mudg_core.index.routing import Probing
from mudg_core.index.vectors import Float32, Int64

if TYPE_CHECKING:
    from mudg_core.index.neighbors import Neighbors
    from mudg_core.index.search import Searcher
    from mudg_core.index.training_data import Samples

At = Literal[1, 10]
Z95 = 1.959963984540054  # the normal distribution holds 95 % within this many deviations
NEIGHBORS = 10
DIGITS = 6
MASSES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.995)


@dataclass(frozen=True)
class Estimate:
    """A share in 0..1 with its 95 % interval."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Rounded, so that the last bit of a sum does not decide a digest."""
        return {name: round(getattr(self, name), DIGITS) for name in ("value", "low", "high")}

    @classmethod
    def from_json(cls, body: Mapping[str, float]) -> Estimate:
        return cls(float(body["value"]), float(body["low"]), float(body["high"]))

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f})"


@dataclass(frozen=True)
class Point:
    """What one search setting finds and costs: `probes` cells, or fewer once they hold `mass` (1: never)."""

    probes: int
    mass: float
    recall_at_1: Estimate
    recall_at_10: Estimate
    read: float  # mean vectors read a query
    share_read: float  # of the gallery
    qps: float | None = None  # queries a second of CPU time; differs from run to run

    def recall(self, at: At) -> Estimate:
        return self.recall_at_1 if at == 1 else self.recall_at_10

    def cost(self) -> str:
        """In words, for messages."""
        mass = f", mass {self.mass:g}" if 0 < self.mass < 1 else ""
        probes = f"{self.probes} probe{'' if self.probes == 1 else 's'}"
        return f"{probes}{mass}: {self.read:,.0f} vectors a query, {share(self.share_read)}"

    def to_json(self, *, timed: bool = False) -> dict[str, Any]:
        """Without `qps` unless asked for: a wall clock must not reach a digest by accident."""
        body = {
            "probes": self.probes,
            "mass": self.mass,
            "recall_at_1": self.recall_at_1.to_json(),
            "recall_at_10": self.recall_at_10.to_json(),
            "read": round(self.read, DIGITS),
            "share_read": round(self.share_read, 2 * DIGITS),
        }
        return body | {"qps": self.qps} if timed else body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Point:
        recalls = {name: Estimate.from_json(body[name]) for name in ("recall_at_1", "recall_at_10")}
        return cls(**{**body, **recalls})


class Search(Protocol):
    """An index under test: rows found (queries x neighbors, -1 for none) and vectors read for each query."""

    def __call__(
        self, queries: Float32, neighbors: int, probes: int, mass: float, /
    ) -> tuple[Int64, Int64]: ...


def share(of_gallery: float) -> str:
    """Small shares keep two significant digits: 0.0031 % is not 0.00 %."""
    percent = 100 * of_gallery
    digits = max(0, 1 - math.floor(math.log10(percent))) if 0 < percent < 10 else 0
    text = f"{percent:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if digits else text) + " % of the gallery"


def recall_at(found_rows: Int64, truth: Int64, k: int) -> Estimate:
    """Share of each query's true top k that is among its first k hits, averaged over queries.

    Truth holds -1 where a query has fewer neighbours: those slots do not count, nor does a query without any.
    A hit of -1 finds nothing, and a row that was found twice (an image in two cells) counts once.
    """
    _check(found_rows, truth, k)
    real = truth[:, :k] >= 0
    hit = (truth[:, :k, None] == found_rows[:, None, :k]).any(axis=2) & real
    counted = real.any(axis=1)
    if not counted.any():
        raise DataError(what="no query to measure recall with", fix="hold out at least one caption")
    shares = hit[counted].sum(axis=1) / real[counted].sum(axis=1)
    return wilson(_mean(shares), len(shares)) if k == 1 else mean_of(shares)


def wilson(value: float, queries: int) -> Estimate:
    """Interval of a proportion; unlike the normal one it stays honest near 0 and 1, where recall lives."""
    z2 = Z95**2
    centre = (value + z2 / (2 * queries)) / (1 + z2 / queries)
    spread = value * (1 - value) / queries + z2 / (4 * queries**2)
    reach = Z95 * math.sqrt(spread) / (1 + z2 / queries)
    return _clipped(value, centre - reach, centre + reach)


def mean_of(shares: NDArray[np.float64]) -> Estimate:
    """Normal interval of a mean of shares. Shares that are all equal (all found, or one query) would give
    an interval of no width, which nobody has measured: those get Wilson's, which is never too narrow."""
    value, queries = _mean(shares), len(shares)
    spread = float(sums_in_order(np.square(shares - value)))
    deviation = math.sqrt(spread / (queries - 1)) if queries > 1 and shares.min() < shares.max() else 0.0
    if deviation == 0:
        return wilson(value, queries)
    reach = Z95 * deviation / math.sqrt(queries)
    return _clipped(value, value - reach, value + reach)


def curve(
    search: Search,
    queries: Float32,
    truth: Int64,
    settings: Iterable[tuple[int, float]],
    rows_total: int,
    clock: Callable[[], float] = time.process_time,
) -> list[Point]:
    """One point for each (probes, mass). The clock counts CPU time: a shared machine makes it no slower."""
    if rows_total < 1:
        raise DataError(what="the index is empty: it has no recall", fix="embed at least one shard")
    points = []
    for probes, mass in settings:
        started = clock()
        rows, read = search(queries, NEIGHBORS, probes, mass)
        seconds = clock() - started
        recalls = recall_at(rows, truth, 1), recall_at(rows, truth, NEIGHBORS)
        mean_read = float(np.mean(read))
        qps = len(queries) / seconds if seconds > 0 else None
        points.append(Point(probes, mass, *recalls, mean_read, mean_read / rows_total, qps))
    return points


def cheapest(points: Sequence[Point], recall: float, at: At) -> Point | None:
    """The point that reads least among those whose measured recall passes; None if none does.

    It is the estimate that must pass, not its lower end: otherwise few queries would buy many probes. The
    winner of a choice looks better than it is, so choose on tuning queries and report on others.
    """
    passing = [point for point in points if point.recall(at).value >= recall]
    return min(passing, key=lambda p: (p.read, -p.recall(at).value, p.probes), default=None)


def _mean(shares: NDArray[np.float64]) -> float:
    """In an order of ours: a recall is compared with what is required, and may be just that."""
    return float(sums_in_order(shares)) / len(shares)


def _clipped(value: float, low: float, high: float) -> Estimate:
    """Inside 0..1, and never beside the value itself, which rounding could do at 0 and 1."""
    return Estimate(value, max(0.0, min(low, value)), min(1.0, max(high, value)))


def _check(found_rows: Int64, truth: Int64, k: int) -> None:
    fits = found_rows.ndim == truth.ndim == 2 and len(found_rows) == len(truth)
    if k < 1 or not fits or truth.shape[1] < k:
        raise DataError(
            what=f"recall at {k} of hits {found_rows.shape} against truth {truth.shape}",
            fix=f"give a row for each query, and at least {k} true neighbours (-1 where there are fewer)",
        )


def costs(searcher: Searcher) -> list[tuple[int, float]]:
    """(probes, mass) worth measuring: one cell, two, four ... all; with a router also by probability."""
    cells = searcher.coarse.cells
    probes = [1 << power for power in range(cells.bit_length()) if 1 << power < cells] + [cells]
    masses = MASSES if searcher.coarse.routed else ()
    return [*((count, 1.0) for count in probes), *((cells, mass) for mass in masses)]


def curves(
    searcher: Searcher,
    queries: Float32,
    truth: Int64,
    costs: Iterable[tuple[int, float]],
    gain: float,
    rerank: int,
    own: Int64 | None = None,
) -> list[Point]:
    """A point for each cost asked for. `own` are the rows that queries were made of, where they are images of
    the index: a query that finds itself has found nothing."""

    def search(queries: Float32, neighbors: int, probes: int, mass: float, /) -> tuple[Int64, Int64]:
        more = neighbors if own is None else neighbors + 1
        result = searcher.search(queries, more, Probing(probes, mass, gain), rerank)
        rows = result.hits.rows if own is None else others(result.hits.rows, own)
        return rows[:, :neighbors], result.read

    searcher.search(queries[:1], 1, Probing(1))  # what the first search loads is not the first point's time
    return curve(search, queries, truth, costs, searcher.images)


def others(rows: Int64, own: Int64) -> Int64:
    """The rows found but a query's own one; the rest move up."""
    itself = rows == own[:, None]
    order = np.argsort(itself, axis=1, kind="stable")
    return np.take_along_axis(np.where(itself, -1, rows), order, axis=1)


def truth_of(near: Neighbors, samples: Samples, kind: str, removed: list[int]) -> Int64:
    """The true nearest rows of each sample that the index can find: not itself, and none that was removed."""
    part = samples.counts.part(kind)
    rows = near.rows[part]
    excluded = np.isin(rows, removed)
    if kind == "images":
        excluded |= rows == samples.rows[part][:, None]
    order = np.argsort(excluded | (rows < 0), axis=1, kind="stable")
    nearest = np.take_along_axis(np.where(excluded, -1, rows), order, axis=1)
    return nearest[:, :NEIGHBORS]


def own_rows(samples: Samples, kind: str) -> Int64 | None:
    """The rows that queries of a kind would find themselves in: those of images."""
    return samples.rows[samples.counts.part(kind)] if kind == "images" else None
