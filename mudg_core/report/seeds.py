"""Measures of several seeds as one: means, and bins of calibration put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mudg_core.evaluate.measures import Bin, Calibration
from mudg_core.report.data import AlphaPoint, ArmMeasures, ConfusedPair, Measures

NUMBERS = ("ece", "confidence", "accuracy")


def measures_of(seeds: Sequence[Mapping[str, Any]]) -> Measures | None:
    """From what `scores.json` holds, one a seed."""
    if not seeds or "mudg" not in seeds[0] or "calibration" not in seeds[0]["mudg"]["single"]:
        return None
    arms = {arm: _arm([seed[arm]["single"] for seed in seeds]) for arm in seeds[0]}
    before = seeds[0].get("zero_shot", {}).get("single", {}).get("confusions", [])
    curves = [seed["mudg"]["alpha"] for seed in seeds if "alpha" in seed["mudg"]]
    return Measures(
        arms,
        _confusions([seed["mudg"]["single"]["confusions"] for seed in seeds], before),
        _alpha([curve["points"] for curve in curves]),
        curves[0]["images"] if curves else 0,
    )


def _arm(scores: Sequence[Mapping[str, Any]]) -> ArmMeasures:
    near = [score["top5"] for score in scores if score["top5"] is not None]
    return ArmMeasures(
        macro=_mean([score["macro"] for score in scores]),
        top5=_mean(near) if near else None,
        calibration=_calibration([score["calibration"] for score in scores]),
    )


def _calibration(seeds: Sequence[Mapping[str, Any]]) -> Calibration:
    """Errors are averaged; bins are put together, so that each is as sure as all its images make it."""
    pooled: dict[tuple[float, float], list[Bin]] = {}
    for seed in seeds:
        for item in seed["bins"]:
            one = Bin(**item)
            pooled.setdefault((one.low, one.high), []).append(one)
    bins = [_bin(pooled[edge]) for edge in sorted(pooled)]
    ece, confidence, accuracy = (_mean([seed[name] for seed in seeds]) for name in NUMBERS)
    return Calibration(ece, confidence, accuracy, bins)


def _bin(parts: Sequence[Bin]) -> Bin:
    weights = [part.images for part in parts]
    confidence, accuracy = (
        float(np.average([getattr(part, name) for part in parts], weights=weights))
        for name in ("confidence", "accuracy")
    )
    return Bin(parts[0].low, parts[0].high, sum(weights), confidence, accuracy)


def _confusions(
    seeds: Sequence[Sequence[Mapping[str, Any]]], before: Sequence[Mapping[str, Any]]
) -> tuple[ConfusedPair, ...]:
    """A pair that a seed does not list counts as none there."""
    plain = {(item["truth"], item["predicted"]): item["share"] for item in before}
    sums: dict[tuple[int, int], list[float]] = {}
    for item in (item for seed in seeds for item in seed):
        both = sums.setdefault((item["truth"], item["predicted"]), [0.0, 0.0])
        both[0] += item["images"] / len(seeds)
        both[1] += item["share"] / len(seeds)
    pairs = [
        ConfusedPair(truth, predicted, images, share, plain.get((truth, predicted)))
        for (truth, predicted), (images, share) in sums.items()
    ]
    return tuple(sorted(pairs, key=lambda one: (-one.images, -one.share, one.truth, one.predicted)))


def _alpha(seeds: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[AlphaPoint, ...]:
    points = []
    for same in zip(*seeds, strict=True):
        single = [point["single"] for point in same]
        std = float(np.std(single, ddof=1)) if len(single) > 1 else 0.0
        averaged = _mean([point["averaged"] for point in same])
        points.append(AlphaPoint(same[0]["alpha"], _mean(single), averaged, std))
    return tuple(points)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
