"""How sure an accuracy is, and a difference of two: 95 % intervals over evaluation images and seeds.

Two things vary: which images one happens to evaluate on, and what a seed draws. The variance due to images is
that of a bootstrap which draws the images of each domain anew, in closed form. The variance due to seeds
comes from very few of them, so the interval is Student's, with the degrees of freedom that Welch and
Satterthwaite give the sum. Percentiles of a bootstrap over seeds would not do: with three seeds they hold the
truth 82 times in 100 (a test here has 95).

A difference is taken image by image and seed by seed before its variance is: an image that is hard for both
classifiers does not make it less sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

Float64 = NDArray[np.float64]
ByDomain = Mapping[str, Float64]  # domain -> (seeds, images), in percent: 100 where an image was recognised

TAIL = 0.975
# JSON has no infinity.
Freedom = Annotated[float, BeforeValidator(lambda stored: math.inf if stored is None else stored)]


@dataclass(frozen=True)
class Estimate:
    """A mean over domains, in percent; `freedom` are the degrees of freedom of its variance over seeds. With
    one seed nothing is known of that: then the interval is of images alone."""

    mean: float
    image_variance: float
    seed_variance: float = 0.0
    freedom: Freedom = math.inf

    @property
    def margin(self) -> float:
        """Half of the 95 % interval."""
        variance = self.image_variance + self.seed_variance
        if not variance:
            return 0.0
        from scipy.special import stdtrit  # slow to import; most who import this compare nothing

        share = self.seed_variance / variance
        freedom = self.freedom / share**2 if share else math.inf
        return float(stdtrit(min(freedom, 1e9), TAIL)) * math.sqrt(variance)

    @property
    def low(self) -> float:
        return self.mean - self.margin

    @property
    def high(self) -> float:
        return self.mean + self.margin

    @property
    def certain(self) -> bool:
        """Zero is outside of the interval."""
        return self.low > 0 or self.high < 0


def estimate(values: ByDomain) -> Estimate:
    """Each domain counts the same, and so does each seed."""
    domains = list(values.values())
    by_seed = np.mean([of_domain.mean(axis=1) for of_domain in domains], axis=0)
    drawn = [of_domain.mean(axis=0).var() / of_domain.shape[1] for of_domain in domains]
    image_variance, seeds = float(np.sum(drawn)) / len(domains) ** 2, len(by_seed)
    if seeds == 1:
        return Estimate(float(by_seed[0]), image_variance)
    return Estimate(
        float(by_seed.mean()), image_variance, float(by_seed.var(ddof=1)) / seeds, float(seeds - 1)
    )


def difference(ours: ByDomain, theirs: ByDomain) -> dict[str, Float64]:
    """Image by image and seed by seed; a classifier of one seed is the same for all."""
    return {domain: np.asarray(own - theirs[domain]) for domain, own in ours.items()}


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """Of targets that are trained and evaluated apart. It is for these targets and not for others."""
    count = len(estimates)
    parts = [one.seed_variance / count**2 for one in estimates]
    seeds, squares = sum(parts), sum(p**2 / one.freedom for p, one in zip(parts, estimates, strict=True))
    return Estimate(
        float(np.mean([one.mean for one in estimates])),
        sum(one.image_variance for one in estimates) / count**2,
        seeds,
        seeds**2 / squares if squares else math.inf,
    )
