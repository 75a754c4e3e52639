"""Rows of a comparison that are not the method's: few-shot training sets, and caches of labelled images.

A few labelled images of each class are what the row `few-shot` is trained on, and nothing else ever is. A
cache beside the zero-shot classifier needs no training.

Tip-Adapter (Zhang et al., 2022): an image is also what the images of the cache that look like it are,

    logits = T f·W + alpha sum_j exp(-beta (1 - f·F_j)) L_j

with f the image, W the text features of the classes, F_j the images of the cache, L_j their labels, one-hot.
Tip-X (SuS-X, Udandarao et al., 2023) adds what images are that the classifier is in the same doubt about:

    + gamma sum_j psi(-KL(s(f) || s(F_j))) L_j,    s(x) = softmax(T x·W)

where psi brings the divergences to the range of the affinities above. Both ranges are taken from the cache
itself, each image against the others, so that a test image's logits never depend on other test images.

Products are exact and powers are the same on every CPU, so the weights that are chosen and the predictions
hang on features alone.
"""

from __future__ import annotations

import hashlib
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mudg_core.dataset.fetch_filter_refill import CHOSEN, FetchResult
from mudg_core.dataset.training_set import write_training_set
from mudg_core.evaluate.images import Labelled, Source
from mudg_core.index.exact import exact_cosines, on_grid, same_exp, same_log, sums_in_order

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

ELEMENTS = 1 << 22  # of an affinity matrix in memory at a time
RANGED = 1000  # images of the cache that the ranges are taken from, at most
TINY = 1e-12
COARSE = 2.0**10  # a log of a probability is above minus this: on a grid coarser by it, products stay exact
ALPHAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
BETAS = (1.0, 3.0, 5.5, 10.0, 30.0)
GAMMAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Weights:
    """The three numbers of the formulas; gamma 0 is Tip-Adapter."""

    alpha: float
    beta: float
    gamma: float


def default_weights(gammas: Sequence[float]) -> Weights:
    """Where there is nothing to choose them by."""
    return Weights(alpha=1.0, beta=5.5, gamma=1.0 if max(gammas) else 0.0)


@dataclass(frozen=True)
class Cache:
    """Unit features and labels of images; `texts` are the zero-shot classifier."""

    images: Float32  # label by label
    labels: Int64
    texts: Float32
    temperature: float

    @classmethod
    def of(cls, images: Float32, labels: Int64, texts: Float32, temperature: float) -> Cache:
        order = np.argsort(labels, kind="stable")
        return cls(images[order], labels[order], texts, temperature)

    def logits(self, images: Float32, weights: Weights) -> Float64:
        """One line for each image."""
        parts = [self._plain(block) + self._by_weights(block, weights) for block in self._blocks(images)]
        return np.concatenate([np.zeros((0, len(self.texts))), *parts])

    def predict(self, images: Float32, weights: Weights) -> Int64:
        """The class of each image; logits of a block are in memory at a time."""
        parts = [self.logits(block, weights).argmax(axis=1) for block in self._blocks(images)]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def affinity(self, images: Float32, beta: float) -> Float64:
        """What Tip-Adapter adds for each class, before alpha; of a few images."""
        return self._by_label(self._affinities(images, beta))

    def likeness(self, images: Float32, beta: float) -> Float64:
        """What Tip-X adds, before gamma."""
        near, far, low, high = self._ranges(beta)
        share = (self._divergence(images) - near) / max(far - near, TINY)
        return self._by_label(high - share * (high - low))

    def _affinities(self, images: Float32, beta: float) -> Float64:
        return same_exp(-beta * (1 - exact_cosines(images, self.images)))

    def _by_weights(self, images: Float32, weights: Weights) -> Float64:
        added = np.zeros((len(images), len(self.texts)))
        if weights.alpha:
            added += weights.alpha * self.affinity(images, weights.beta)
        if weights.gamma:
            added += weights.gamma * self.likeness(images, weights.beta)
        return added

    def _plain(self, images: Float32) -> Float64:
        return np.asarray(self.temperature * exact_cosines(images, self.texts))

    def _blocks(self, images: Float32) -> Iterator[Float32]:
        size = max(1, ELEMENTS // max(1, len(self.images)))
        return (images[first : first + size] for first in range(0, len(images), size))

    def _by_label(self, each: Float64) -> Float64:
        """Sums over the images of each label, which lie side by side: one-hot labels without the zeros. On
        the grid, so that they are exact in any order."""
        sums = np.zeros((len(each), len(self.texts)))
        labels, starts = np.unique(self.labels, return_index=True)
        if len(labels):
            sums[:, labels] = np.add.reduceat(on_grid(each), starts, axis=1)
        return sums

    def _divergence(self, images: Float32) -> Float64:
        """KL(s(image) || s(cached)) of every image and every cached one."""
        mine, theirs = self._log_signatures(images), self._log_signatures(self.images)
        mass = on_grid(same_exp(mine))
        own = sums_in_order(mass * mine)[:, None]
        return np.asarray(own - COARSE * (mass @ on_grid(theirs / COARSE).T))

    def _log_signatures(self, images: Float32) -> Float64:
        logits = self._plain(images)
        logits -= logits.max(axis=1, keepdims=True)
        return np.asarray(logits - same_log(sums_in_order(same_exp(logits)))[:, None])

    def _ranges(self, beta: float) -> tuple[float, float, float, float]:
        """Least and greatest divergence, and least and greatest affinity, among different cached images."""
        some = np.linspace(0, len(self.images) - 1, min(RANGED, len(self.images))).astype(np.int64)
        pairs = ~(some[:, None] == some[None])
        few = Cache(self.images[some], self.labels[some], self.texts, self.temperature)
        divergence = few._divergence(few.images)[pairs]
        affinity = few._affinities(few.images, beta)[pairs]
        if not len(affinity):
            return 0.0, 1.0, 0.0, 1.0
        edges = (float(divergence.min()), float(divergence.max()))
        return *edges, float(affinity.min()), float(affinity.max())


def choose_weights(
    cache: Cache,
    images: Float32,
    labels: Int64,
    alphas: Sequence[float] = ALPHAS,
    betas: Sequence[float] = BETAS,
    gammas: Sequence[float] = GAMMAS,
) -> Weights:
    """The weights that put most of some images where their pseudo-labels do; of equals the smallest.

    Each beta costs one look at the cache, and all alphas and gammas together no more than sums.
    """
    best, most = default_weights(gammas), -1
    plain = cache._plain(images)
    for beta in betas:
        near, like = cache.affinity(images, beta), cache.likeness(images, beta)
        for alpha, gamma in product(alphas, gammas):
            predicted = (plain + alpha * near + gamma * like).argmax(axis=1)
            right = int((predicted == labels).sum())
            if right > most:
                best, most = Weights(alpha, beta, gamma), right
    return best


def few_shot(source: Source, k: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """(label, encoded image) of k training images of each class, or all of a class that has fewer.

    A hash of the seed and of the file's own name says who is drawn: the same wherever the dataset lies, and
    only k names of a class are held.
    """
    drawn: dict[int, list[tuple[bytes, str, Labelled]]] = {}
    for image in source.listed("train"):
        key = f"{seed}\0{image.label}\0{Path(image.name).name}"
        lot = hashlib.blake2b(key.encode(), digest_size=16).digest()
        best = drawn.setdefault(image.label, [])
        insort(best, (lot, image.name, image), key=itemgetter(0, 1))
        del best[k:]
    for label in sorted(drawn):
        for _, _, image in drawn[label]:
            yield label, image.read()


def write_few_shot(images: Iterable[tuple[int, bytes]], out: Path) -> list[int]:
    """As a training set, so that the same training takes it; returns the labels."""
    labels, pictures = [], {}
    for row, (label, image) in enumerate(images):
        labels.append(label)
        pictures[row] = image
    columns = {"row": range(len(labels)), "label": labels, "query": labels}
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    table = table.append_column("outcome", pa.array([CHOSEN] * len(labels)))
    links = {row: {"url": "", "caption": ""} for row in pictures}
    write_training_set(FetchResult(table, pictures, len(labels), {}, 1), links, out)
    return labels
