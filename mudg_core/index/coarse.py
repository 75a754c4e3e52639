"""The coarse level of the index: which cell an image lies in, and which cells a query reads.

The two sides differ, and that is the point. Images go to the nearest centroid, and centroids are means of
texts. Queries are routed by a linear layer that starts at those centroids and may have been trained since
(`router.py`). Both sides can be centred first, which takes the modality gap out of every comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from mudg_core.errors import DataError
from mudg_core.index.nearest_cell import assign
from mudg_core.index.vectors import Float32, Int64, normalised


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

    def scores(self, queries: Float32) -> Float32:
        """How much each cell promises for each query; softmax of a trained router is a probability."""
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise DataError(
                what=f"queries of shape {queries.shape} against an index of dimension {self.dim}",
                fix="embed the queries with the model that built the index",
            )
        return np.asarray(self.centring.texts(queries) @ self.weights.T + self.bias, dtype=np.float32)

    def choose(self, queries: Float32, sizes: Int64, probing: Probing) -> Int64:
        """Cells to read for each query, most promising first, padded with -1."""
        if not self.routed:
            probing = Probing(probing.probes)
        return choose(self.scores(queries), sizes, probing)

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


def choose(scores: Float32, sizes: Int64, probing: Probing) -> Int64:
    """See `Probing`. The first cell is always read."""
    import torch  # here: a run that finds everything made imports this module and should not load torch

    worth = torch.from_numpy(scores - np.float32(probing.gain) * np.log1p(sizes).astype(np.float32))
    cells: Int64 = worth.topk(min(probing.probes, scores.shape[1]), dim=1).indices.numpy()
    if probing.mass >= 1:
        return cells
    taken = np.take_along_axis(probabilities(scores), cells, axis=1)
    before = np.cumsum(taken, axis=1) - taken
    return np.where(before < probing.mass, cells, -1)


def probabilities(scores: Float32) -> Float32:
    import torch

    found: Float32 = torch.from_numpy(scores).softmax(dim=1).numpy()
    return found


def vectors_read(cells: Int64, sizes: Int64) -> Int64:
    """How many vectors each query reads."""
    return np.asarray(np.where(cells >= 0, sizes[cells], 0).sum(axis=1))
