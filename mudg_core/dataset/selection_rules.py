"""The images of one label in the order in which a method would take them.

These are the baselines that the paper compares clustering with. An order depends on the images alone and on a
seed, never on the label's number; where two images are equal, the lower row comes first. Cosines are exact
(see `index/exact.py`) and exponentials the same on every CPU, so an order is the same everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.exact import exact_cosines, on_grid, same_exp, same_log, sums_in_order
from mudg_core.index.vectors import normalised

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

IMAGES_AT_ONCE = 1024
SCALE = 25.0  # logits = 25 x cosine, as in training


@dataclass(frozen=True)
class Rule:
    """How to select. `prompts`, the features of all labels' plain prompts, are for the uncertain methods."""

    method: str
    per_class: int
    seed: int
    prompts: Float32 | None = None
    scale: float = SCALE


@dataclass(frozen=True)
class Images:
    """The images of one label, by ascending row; `features` is empty where the method needs none."""

    rows: Int64
    ranks: Int64
    cosines: Float32
    features: Float32

    def random(self, rule: Rule) -> np.random.Generator:
        """Chance that depends on seed, method and images, so that it is the same for any list of classes."""
        text = rule.method.encode() + b"\0" + self.rows.astype("<i8").tobytes()
        words = np.frombuffer(hashlib.sha256(text).digest(), dtype="<u4")
        return np.random.default_rng([rule.seed, *words.tolist()])


def at_random(images: Images, rule: Rule) -> Int64:
    return images.random(rule).permutation(len(images.rows))


def nearest(images: Images, rule: Rule) -> Int64:
    """Best ranks first, then highest cosines."""
    return np.lexsort((-images.cosines, images.ranks))


def margin(images: Images, rule: Rule) -> Int64:
    """Least difference between the two likeliest labels first."""
    return _most_uncertain(images, rule, lambda p: sums_in_order(p[:, :-1]) + sums_in_order(p[:, -2:-1]))


def least_confident(images: Images, rule: Rule) -> Int64:
    """Lowest probability of the likeliest label first."""
    return _most_uncertain(images, rule, lambda p: sums_in_order(p[:, :-1]))


def entropy(images: Images, rule: Rule) -> Int64:
    return _most_uncertain(images, rule, lambda p: -sums_in_order(p * same_log(p)))


def herding(images: Images, rule: Rule) -> Int64:
    """Each next image brings the mean of those taken nearest to the mean of all (Welling, 2009).

    Products with both are exact; with their difference, which grows, they would not be.
    """
    points = on_grid(normalised(images.features))
    to_mean = points @ on_grid(points.sum(axis=0) / len(points))
    order, wish = np.empty(len(points), dtype=np.int64), to_mean.copy()
    for turn in range(len(points)):
        order[turn] = taken = int(np.argmax(wish))
        wish += to_mean - points @ points[taken]
        wish[taken] = -np.inf
    return order


def k_centre(images: Images, rule: Rule) -> Int64:
    """Each next image is the farthest from those taken; the first is random (Sener and Savarese, 2018)."""
    points = on_grid(normalised(images.features))
    order = np.empty(len(points), dtype=np.int64)
    closest = np.full(len(points), -np.inf)
    taken = int(images.random(rule).integers(len(points)))
    for turn in range(len(points)):
        order[turn] = taken
        closest = np.maximum(closest, points @ points[taken])
        closest[taken] = np.inf
        taken = int(np.argmin(closest))
    return order


def _most_uncertain(images: Images, rule: Rule, uncertainty: Callable[[Float64], Float64]) -> Int64:
    parts = [
        uncertainty(_probabilities(images.features[first : first + IMAGES_AT_ONCE], rule))
        for first in range(0, len(images.rows), IMAGES_AT_ONCE)
    ]
    return np.argsort(-np.concatenate(parts), kind="stable")


def _probabilities(features: Float32, rule: Rule) -> Float64:
    """Of all labels for each image, lowest first: sorted before they are summed, so that the order in which
    labels are listed does not matter."""
    if rule.prompts is None:
        raise ValueError(f"{rule.method} needs the prompts of all labels")
    cosines = np.sort(exact_cosines(normalised(features), normalised(rule.prompts)), axis=1)
    likely = same_exp(rule.scale * (cosines - cosines[:, -1:]))
    return np.asarray(likely / sums_in_order(likely)[:, None], dtype=np.float64)


Order = Callable[[Images, Rule], Int64]
UNCERTAIN: dict[str, Order] = {"margin": margin, "least-confident": least_confident, "entropy": entropy}
BY_FEATURES: dict[str, Order] = {**UNCERTAIN, "herding": herding, "k-centre": k_centre}
ORDERS: dict[str, Order] = {"none": at_random, "random": at_random, "nearest": nearest, **BY_FEATURES}
