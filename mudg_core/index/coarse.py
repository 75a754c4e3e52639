"""The coarse level of the index: which cell an image lies in, and which cells a query reads.

The two sides differ, and that is the point. Images go to the nearest centroid, and centroids are means of
texts. Queries are routed by a linear layer that starts at those centroids and may have been trained since
(`router.py`). Both sides can be centred first, which takes the modality gap out of every comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from mudg_core.errors import DataError
from mudg_core.index.blocks import blocks
from mudg_core.index.exact_powers import TERMS, same_exp, same_log, sums_in_order
from mudg_core.index.exact_products import exact_cosines, exact_cosines_by_row, float32_error
from mudg_core.index.nearest_cell import assign
from mudg_core.index.routing import as_routing, rounded_queries, routing_scores
from mudg_core.index.settle import Exact, settle
from mudg_core.index.vectors import Bool, Float32, Float64, Int64, normalised

SPARE = 4  # cells scored beside those that are read, in case they tie with the last one; of many an eighth
ORDERED = 128  # cells that are put into their exact order, if centroids route
SCORE_BYTES = 32  # that a score takes while cells are chosen,
POWER_BYTES = 48  # while it becomes a probability,
PAIR_BYTES = 24  # and a number of a vector while products are exact


@dataclass(frozen=True)
class Centring:
    """What is taken away from images and from texts before they are compared; zeros for nothing."""

    image: Float32
    text: Float32

    def images(self, images: Float32) -> Float32:
        return normalised(images - self.image)

    def texts(self, texts: Float32) -> Float32:
        return normalised(texts - self.text)


@dataclass(frozen=True)
class Probing:
    """How much of the index a query reads: `probes` cells at most. A trained router knows how likely each
    cell is, so with one it also stops once the cells chosen have probability `mass`, and takes cells in the
    order of score - gain * log(size): with gain 1, by expected hits for each vector read."""

    probes: int
    mass: float = 1.0
    gain: float = 0.0


@dataclass(frozen=True)
class Coarse:
    centring: Centring
    centroids: Float32  # of images
    weights: Float32  # of queries
    bias: Float32
    routed: bool = False  # the query side was trained, and its scores are log-probabilities

    @classmethod
    def unrouted(cls, centring: Centring, centroids: Float32) -> Coarse:
        """Queries go to the nearest centroids, as in any IVF index."""
        return cls(centring, centroids, centroids, np.zeros(len(centroids), np.float32))

    def for_images(self) -> Coarse:
        """The same cells for queries that are images: they go where an image would be put."""
        image = self.centring.image
        return Coarse.unrouted(Centring(image, image), self.centroids)

    @property
    def cells(self) -> int:
        return len(self.centroids)

    @property
    def dim(self) -> int:
        return int(self.centroids.shape[1])

    def cells_of(self, images: Float32) -> Int64:
        """The cell of each image. Not normalised after centring: the length of an image does not change which
        centroid is nearest."""
        mean = self.centring.image
        if not mean.any():
            return assign(images, self.centroids)
        return assign(images - mean, self.centroids, longest=1 + float(np.linalg.norm(mean)))

    @cached_property
    def _router(self) -> tuple[Float32, Float32]:
        """Weights and biases as they score; what an older version has trained is made so here."""
        return as_routing(self.weights, self.bias)

    def scores(self, queries: Float32) -> NDArray[np.floating]:
        """How much each cell promises for each query; softmax of a trained router is a probability. Exact, so
        the same on every CPU."""
        unit = self._unit(queries)
        return self._routing(unit) if self.routed else self._cosines(unit)

    def _routing(self, unit: Float32) -> Float32:
        return routing_scores(rounded_queries(unit), *self._router)

    def _cosines(self, unit: Float32) -> Float64:
        scores = np.empty((len(unit), self.cells))
        for part in blocks(self.cells, PAIR_BYTES * self.dim):
            scores[:, part] = exact_cosines(unit, self.weights[part])
        scores += self.bias
        return scores

    def choose(self, queries: Float32, sizes: Int64, probing: Probing) -> Int64:
        """Cells to read for each query, most promising first, padded with -1. Where centroids route and more
        than ORDERED are read, they come by number: what is found does not depend on their order."""
        self.check(queries)
        cut = blocks(len(queries), SCORE_BYTES * self.cells)
        each = [self._choose(self.centring.texts(queries[block]), sizes, probing) for block in cut]
        return np.concatenate(each)

    def _choose(self, unit: Float32, sizes: Int64, probing: Probing) -> Int64:
        if self.routed:
            return choose(self._routing(unit), sizes, probing)
        return self._nearest(unit, min(probing.probes, self.cells))

    def _nearest(self, unit: Float32, probes: int) -> Int64:
        """By float32 products, and by exact ones where these are too close to tell."""
        quick = unit @ self.weights.T
        quick += self.bias
        values, cells = _best(quick, min(probes + max(SPARE, probes // 8), self.cells))

        def exact(lines: Int64, columns: Int64) -> Float64:
            return self._cosines_by_row(unit, lines, cells[lines, columns])

        margin, complete = 2.001 * self._longest * float32_error(self.dim + 1), cells.shape[1] == self.cells
        if probes > ORDERED:
            nearest, unsure = _best_by_number(values, cells, probes, margin, exact, complete=complete)
        else:
            found = settle(values.astype(np.float64), cells, probes, margin, exact, complete=complete)
            nearest, unsure = np.take_along_axis(cells, found.columns, axis=1)[:, :probes], found.unsure
        lines = np.flatnonzero(unsure)
        for part in blocks(len(lines), SCORE_BYTES * self.cells) if len(lines) else ():
            best = ranked(self._cosines(unit[lines[part]]), probes)
            nearest[lines[part]] = np.sort(best, axis=1) if probes > ORDERED else best
        return nearest

    def _cosines_by_row(self, unit: Float32, lines: Int64, cells: Int64) -> Float64:
        scores = np.empty(len(lines))
        for part in blocks(len(lines), PAIR_BYTES * self.dim):
            scores[part] = exact_cosines_by_row(unit[lines[part]], self.weights[cells[part]])
        return np.asarray(scores + self.bias[cells], dtype=np.float64)

    @cached_property
    def _longest(self) -> float:
        """What float32 errors of unrouted scores grow with."""
        return max(1.0, float(np.linalg.norm(self.weights, axis=1).max() + np.abs(self.bias).max()))

    def _unit(self, queries: Float32) -> Float32:
        self.check(queries)
        return self.centring.texts(queries)

    def check(self, queries: Float32) -> None:
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise DataError(
                what=f"queries of shape {queries.shape} against an index of dimension {self.dim}",
                fix="embed the queries with the model that built the index",
            )

    def save(self, path: Path) -> None:
        arrays = {"centroids": self.centroids, "weights": self.weights, "bias": self.bias}
        arrays |= {"image_mean": self.centring.image, "text_mean": self.centring.text}
        save_file(arrays | {"routed": np.array([self.routed])}, path)

    @classmethod
    def load(cls, path: Path) -> Coarse:
        try:
            found = load_file(path)
            centring = Centring(found["image_mean"], found["text_mean"])
            routed = bool(found["routed"][0])
            return cls(centring, found["centroids"], found["weights"], found["bias"], routed)
        except Exception as error:  # safetensors raises its own kinds
            raise DataError(
                what=f"not readable as the coarse level of an index: {error}",
                where=str(path),
                fix="run `mudg index build` again",
            ) from error


def choose(scores: NDArray[np.floating], sizes: Int64, probing: Probing) -> Int64:
    """See `Probing`. The first cell is always read. Of equal worth the lower cell comes first."""
    worth = scores - size_penalty(sizes, probing.gain)
    cells = ranked(worth, min(probing.probes, scores.shape[1]))
    return cells if probing.mass >= 1 else np.where(_before(scores, cells, probing.mass), cells, -1)


def ranked(worth: NDArray[np.floating], count: int) -> Int64:
    """The best of each line, best first, and of equal ones the lower."""
    values, cells = _best(worth, min(count + 1, worth.shape[1]))
    again = values[:, 1:] == values[:, :-1]
    equal = np.flatnonzero(again.any(axis=1))
    order = np.lexsort((cells[equal], -values[equal]), axis=1)
    cells[equal] = np.take_along_axis(cells[equal], order, axis=1)
    for line in np.flatnonzero(again[:, -1]) if cells.shape[1] > count else ():
        better = int((values[line] > values[line, -1]).sum())  # than the last one, which others are equal to
        cells[line, better:count] = np.flatnonzero(worth[line] == values[line, -1])[: count - better]
    return cells[:, :count]


def _best_by_number(
    values: NDArray[np.floating], cells: Int64, count: int, margin: float, exact: Exact, *, complete: bool
) -> tuple[Int64, Bool]:
    """Which the best are, in the order of their numbers, and in which lines there may be others. What is
    within the margin of the last one is compared exactly; what is above is among the best, what is below is
    not."""
    last = values[:, count - 1, None]
    close = np.abs(values - last) <= margin
    unsure = close[:, -1] & (not complete)
    close[unsure], close[:, count - 1] = False, True
    columns = np.flatnonzero(close.any(axis=0))
    first, end = int(columns[0]), int(columns[-1]) + 1
    worth, some = np.where(values[:, first:end] > last, np.inf, -np.inf), cells[:, first:end]
    lines, columns = np.nonzero(close[:, first:end])
    worth[lines, columns] = exact(lines, columns + first)
    order = np.lexsort((some, -worth), axis=1)[:, : count - first]
    best = np.concatenate([cells[:, :first], np.take_along_axis(some, order, axis=1)], axis=1)
    return np.sort(best, axis=1), unsure


def _before(scores: NDArray[np.floating], cells: Int64, mass: float) -> Bool:
    """Whether the cells before each hold less than `mass`. Quick probabilities tell; where they are within
    their error of it, the slow ones do. Either way float64 adds powers that are right to a few last bits, so
    that sums are right to 2^-52 for each cell."""
    import torch  # here: a run that finds everything made imports this module and should not load torch

    below = (scores - scores.max(axis=1, keepdims=True)).astype(np.float64)
    quick = torch.from_numpy(below).softmax(dim=1).numpy()
    before = _mass_before(np.take_along_axis(quick, cells, axis=1))
    less = np.asarray(before < mass, dtype=np.bool_)
    error = 2.0**-40 + 2.0**-50 * scores.shape[1]
    close = np.flatnonzero((np.abs(before - mass) < error).any(axis=1))
    for part in blocks(len(close), POWER_BYTES * scores.shape[1]) if len(close) else ():
        lines = close[part]
        taken = np.take_along_axis(probabilities(scores[lines]), cells[lines], axis=1)
        less[lines] = _mass_before(taken) < mass
    return less


def _mass_before(taken: NDArray[np.floating]) -> NDArray[np.floating]:
    before = np.zeros_like(taken)
    np.cumsum(taken[:, :-1], axis=1, out=before[:, 1:])
    return before


def _best(scores: NDArray[np.floating], count: int) -> tuple[NDArray[np.floating], Int64]:
    """The best of each line, best first; of equal ones whichever."""
    import torch

    found = torch.from_numpy(scores).topk(count, dim=1)
    return found.values.numpy(), found.indices.numpy()


def size_penalty(sizes: Int64, gain: float) -> Float32:
    """What a cell's size takes from its worth."""
    return _penalty(np.asarray(sizes, np.int64).tobytes(), gain)


@lru_cache(maxsize=8)
def _penalty(sizes: bytes, gain: float) -> Float32:
    """A logarithm that is the same everywhere is slow; the sizes of an index do not change."""
    logs = same_log(np.frombuffer(sizes, np.int64) + 1.0).astype(np.float32)
    return np.asarray(np.float32(gain) * logs, dtype=np.float32)


def probabilities(scores: NDArray[np.floating], terms: int = TERMS) -> Float64:
    """Softmax, with the same bits everywhere."""
    powers = same_exp(scores - scores.max(axis=1, keepdims=True), terms)
    powers /= sums_in_order(powers)[:, None]
    return powers


def vectors_read(cells: Int64, sizes: Int64) -> Int64:
    """How many vectors each query reads."""
    return np.asarray(np.where(cells >= 0, sizes[cells], 0).sum(axis=1))
