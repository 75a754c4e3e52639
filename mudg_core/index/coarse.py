"""The coarse level of the index: which cell an image lies in, and which cells a query reads.

The two sides differ, and that is the point. Images go to the nearest centroid, and centroids are means of
texts. Queries are routed by a linear layer that starts at those centroids and may have been trained since
(`router.py`). Both sides can be centred first, which takes the modality gap out of every comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from mudg_core.errors import DataError
from mudg_core.index.exact import exact_cosines, exact_cosines_by_row, float32_error, settle
from mudg_core.index.nearest_cell import assign
from mudg_core.index.routing import (
    Probing,
    as_routing,
    best_by_number,
    choose,
    highest,
    ranked,
    rounded_queries,
    routing_scores,
)
from mudg_core.index.vectors import Float32, Float64, Int64, blocks, normalised

SPARE = 4  # cells scored beside those that are read, in case they tie with the last one; of many an eighth
ORDERED = 128  # cells that are put into their exact order, if centroids route
SCORE_BYTES = 32  # that a score takes while cells are chosen
PAIR_BYTES = 24  # that a number of a vector takes while products are exact


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
        values, cells = highest(quick, min(probes + max(SPARE, probes // 8), self.cells))

        def exact(lines: Int64, columns: Int64) -> Float64:
            return self._cosines_by_row(unit, lines, cells[lines, columns])

        margin, complete = 2.001 * self._longest * float32_error(self.dim + 1), cells.shape[1] == self.cells
        if probes > ORDERED:
            nearest, unsure = best_by_number(values, cells, probes, margin, exact, complete=complete)
        else:
            order = settle(values.astype(np.float64), cells, probes, margin, exact, complete=complete)
            nearest, unsure = np.take_along_axis(cells, order.columns, axis=1)[:, :probes], order.unsure
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
            arrays = load_file(path)
            centring = Centring(arrays["image_mean"], arrays["text_mean"])
            routed = bool(arrays["routed"][0])
            return cls(centring, arrays["centroids"], arrays["weights"], arrays["bias"], routed)
        except Exception as error:  # safetensors raises its own kinds
            raise DataError(
                what=f"not readable as the coarse level of an index: {error}",
                where=str(path),
                fix="run `mudg index build` again",
            ) from error
