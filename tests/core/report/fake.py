"""A made-up run with the numbers of a real one: everything the report can show, for any number of classes."""

from __future__ import annotations

import io
import random
from hashlib import sha256
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from mudg_core.dataset.image_map import ClassMap
from mudg_core.dataset.pseudo_labels import Hubness
from mudg_core.dataset.warning import TargetWarning
from mudg_core.evaluate.measures import Bin, Calibration
from mudg_core.report.data import (
    AlphaPoint,
    ArmMeasures,
    ConfusedPair,
    Descriptor,
    DomainScores,
    GalleryImage,
    IndexReport,
    LineageNode,
    Measures,
    ReportData,
    TargetReport,
    Timing,
)

ANIMALS = (
    "cat",
    "dog",
    "fox",
    "wolf",
    "bear",
    "rabbit",
    "pig",
    "horse",
    "zebra",
    "giraffe",
    "elephant",
    "bird",
    "owl",
    "duck",
    "penguin",
    "fish",
    "shark",
    "turtle",
)
DOMAINS = ("chalk", "neon", "sketch", "watercolor")
PHRASES = (
    "which has stripes",
    "which is seen from above",
    "at the beach",
    "which is drawn with chalk",
    "in snow",
    "which has a long neck",
    "made of paper",
    "on a postcard",
    "which is small",
    "seen at night",
)
REASONS = ("dead link", "unlike its query", "unreadable image")
FRESH = {"unlike its query": (0.1, 0.25)}
DETAILS = {"dead link": ("HTTP 404", "dead host", "opted out"), "unreadable image": ("image: truncated",)}


def picture(dice: random.Random) -> bytes:
    """A coloured shape on a coloured ground."""
    ink, ground = (tuple(dice.randrange(256) for _ in range(3)) for _ in range(2))
    image = Image.new("RGB", (64, 64), ground)
    draw = ImageDraw.Draw(image)
    corner, size = dice.randrange(4, 20), dice.randrange(24, 40)
    shape = dice.choice((draw.ellipse, draw.rectangle))
    shape((corner, corner, corner + size, corner + size), fill=ink)
    data = io.BytesIO()
    image.save(data, "JPEG", quality=85)
    return data.getvalue()


def fake_target(
    classes: tuple[str, ...] = ANIMALS,
    *,
    name: str = "animals",
    gain: float = 12.3,
    evaluated: bool = True,
    seeds: int = 1,
    per_class: int = 16,
    extras: bool = False,
) -> TargetReport:
    dice = random.Random(len(classes) + seeds)
    size = len(classes)
    before = tuple(int(900 / (1 + 0.5 * i)) + dice.randrange(20) for i in range(size))
    after = tuple(min(per_class, n) for n in before)
    pictures = [picture(dice) for _ in range(24)]
    return TargetReport(
        name=name,
        description="Pets, farm and wild animals; dog, fox and wolf are close.",
        classes=classes,
        template="a photo of a {}.",
        seeds=tuple(range(seeds)),
        scores=_scores(dice, gain, seeds) if evaluated else {},
        class_accuracy=_class_accuracy(dice, size, gain) if evaluated else {},
        descriptors=_descriptors(dice),
        labels_before=before,
        labels_after=after,
        funnel=(
            ("hits", 16_384),
            ("different rows", 5_210),
            ("different images", 3_021),
            ("labelled", 3_021),
            ("selected", sum(after)),
            ("fetched", sum(after) + 52),
            ("kept", sum(after)),
        ),
        outcomes={"chosen": sum(after), "dead link": 31, "unlike its query": 48, "unreadable image": 4},
        gallery=tuple(_gallery(dice, classes, after, pictures)),
        losses=tuple(_loss_curve(dice) for _ in range(seeds)),
        initial_share=0.367,
        groups=16,
        min_cosine=0.25,
        **(_extras(classes, seeds) if extras else {}),
    )


def _extras(classes: tuple[str, ...], seeds: int) -> dict[str, Any]:
    """What only some runs have."""
    return {
        "warnings": fake_warnings(classes),
        "hubness": fake_hubness(len(classes)),
        "map": fake_map(len(classes)),
        "measures": fake_measures(len(classes), seeds),
    }


def fake_measures(size: int, seeds: int = 1) -> Measures:
    """A student that is too sure of itself, and less so after finetuning."""
    dice = np.random.default_rng(size)

    def calibration(excess: float) -> Calibration:
        centres = (np.arange(15) + 0.5) / 15
        images = dice.integers(20, 160, 15)
        bins = [
            Bin(place / 15, (place + 1) / 15, int(n), 100 * float(c), max(0.0, 100 * float(c) - excess))
            for place, (c, n) in enumerate(zip(centres, images, strict=True))
        ]
        return Calibration(excess, 71.2, 71.2 - excess, bins)

    pairs = sorted({(int(a), int(b)) for a, b in dice.integers(0, size, (40, 2)) if a != b})
    confused = [
        ConfusedPair(truth, predicted, 40.0 - place, 50.0 - place, None if place % 3 else 61.5)
        for place, (truth, predicted) in enumerate(pairs)
    ]
    arms = {"zero_shot": 19.4, "nearest_neighbours": 12.0, "mudg": 6.3}
    curve = [(0.0, 58.9), (0.25, 66.0), (0.5, 70.4), (0.75, 71.6), (1.0, 71.2)]
    return Measures(
        {arm: ArmMeasures(58.1, 91.3 if size > 5 else None, calibration(more)) for arm, more in arms.items()},
        tuple(confused),
        tuple(AlphaPoint(a, v, v - 1.2, 0.0 if seeds == 1 else 0.8) for a, v in curve),
        512,
    )


def fake_warnings(classes: tuple[str, ...]) -> tuple[TargetWarning, ...]:
    absent = [
        TargetWarning(
            "absent",
            (name,),
            f"The corpus seems to hold no images of '{name}': what it finds is no nearer than what random "
            "captions find. Add images of it, or leave the class out.",
            {"distance": 0.213, "background": 0.241},
        )
        for name in classes[:: max(len(classes) // 20, 9)]
    ]
    few = [
        TargetWarning("few", (name,), f"'{name}' has only 3 images.", {"chosen": 3}) for name in classes[-3:]
    ]
    twins = TargetWarning(
        "twins", classes[:2], "Their texts are nearly the same: images go to either.", {"cosine": 0.97}
    )
    return (*few, *absent, twins, TargetWarning("leaks", (), "12 evaluation images also lie in the corpus."))


def fake_hubness(size: int) -> Hubness:
    dice = np.random.default_rng(size)
    by_rank = dice.integers(80, 160, size)
    by_cosine = np.maximum(by_rank + dice.normal(0, 25, size).astype(int), 1)
    by_cosine[0] += 240
    return Hubness(tuple(by_rank.tolist()), tuple(by_cosine.tolist()), 0.31, 3.87, (0,), 0.0, ())


def fake_map(size: int, points: int = 2000) -> ClassMap:
    """A cloud for each class; the nearest neighbours sit in one corner of it, the chosen are all over it."""
    dice = np.random.default_rng(size)
    label = np.sort(dice.integers(0, size, points))
    centres = dice.uniform(0.1, 0.9, (size, 2))
    chosen = dice.random(points) < 0.12
    nearest = dice.random(points) < 0.1
    spread = np.where(nearest, 0.012, 0.045)[:, None]
    shift = np.where(nearest, 0.03, 0.0)[:, None]
    place = centres[label] + shift + dice.normal(size=(points, 2)) * spread
    place = ((place - place.min(axis=0)) / np.ptp(place, axis=0)).astype(np.float32)
    return ClassMap(place[:, 0], place[:, 1], np.arange(points), label, nearest, chosen, images=24_311)


def _loss_curve(dice: random.Random) -> tuple[float, ...]:
    return tuple(3.2 / (1 + step / 40) + 0.6 + dice.gauss(0, 0.12) for step in range(200))


def _scores(dice: random.Random, gain: float, seeds: int) -> dict[str, DomainScores]:
    plan = {
        "zero_shot": 0.0,
        "nearest_neighbours": gain * 0.6,
        "mudg": gain,
        "zero_shot_averaged": 1.4,
        "mudg_averaged": gain + 0.8,
    }
    scores = {}
    for arm, more in plan.items():
        shifts = zip(DOMAINS, (4.1, -11.0, 2.3, 4.6), strict=True)
        domains = {domain: round(58.9 + more + shift, 2) for domain, shift in shifts}
        spread = round(dice.uniform(0.4, 1.2), 2) if seeds > 1 and not arm.startswith("zero") else 0.0
        scores[arm] = DomainScores(round(58.9 + more, 2), spread, domains)
    return scores


def _class_accuracy(dice: random.Random, size: int, gain: float) -> dict[str, tuple[float, ...]]:
    plain = [dice.uniform(25, 85) for _ in range(size)]
    ours = [min(100.0, max(0.0, value + dice.gauss(gain, 11))) for value in plain]
    return {"zero_shot": tuple(plain), "nearest_neighbours": tuple(plain), "mudg": tuple(ours)}


def _descriptors(dice: random.Random, amount: int = 220) -> tuple[Descriptor, ...]:
    scored = sorted((max(0, round(dice.gauss(6, 3))), dice.gauss(0.2, 0.4)) for _ in range(amount))
    texts = [*PHRASES, *(f"{PHRASES[i % len(PHRASES)]}, variant {i}" for i in range(len(PHRASES), amount))]
    every = enumerate(zip(texts, scored, strict=True))
    return tuple(Descriptor(text, loss, rise, i < 16) for i, (text, (loss, rise)) in every)


def _gallery(
    dice: random.Random, classes: tuple[str, ...], after: tuple[int, ...], pictures: list[bytes]
) -> list[GalleryImage]:
    images = []
    for label, name in enumerate(classes):
        outcomes = ["chosen"] * after[label] + [dice.choice(REASONS) for _ in range(5)]
        for place, outcome in enumerate(outcomes):
            dead = outcome == "dead link"
            row = 1000 * label + place
            images.append(
                GalleryImage(
                    image=b"" if dead else dice.choice(pictures),
                    label=label,
                    row=row,
                    query=f"a photo of a {name}, {dice.choice(PHRASES)}.",
                    rank=dice.randrange(1, 65),
                    cosine=dice.uniform(0.24, 0.41),
                    fresh_cosine=None if dead else dice.uniform(*FRESH.get(outcome, (0.25, 0.4))),
                    outcome=outcome,
                    url=f"https://pictures.example/{row}.jpg",
                    caption=f"{name} on a postcard",
                    detail=dice.choice(DETAILS.get(outcome, ("",))),
                )
            )
    return images


def fake_lineage(shards: int = 12) -> tuple[LineageNode, ...]:
    shape = {
        "corpus-shard": (),
        "embedding-shard": ("corpus-shard",),
        "pairs": ("embedding-shard",),
        "centroids": ("pairs",),
        "index": ("centroids", "embedding-shard"),
        "queries": (),
        "candidates": ("queries", "index"),
        "pseudo-labels": ("candidates",),
        "training-set": ("pseudo-labels", "corpus-shard", "queries"),
        "model": ("training-set", "queries"),
        "scores": ("model",),
    }
    many = {stage: shards if "shard" in stage else 1 for stage in shape}
    names = {stage: [f"{stage}/{i:012x}" for i in range(many[stage])] for stage in shape}
    return tuple(
        LineageNode(
            ref,
            stage,
            sha256(ref.encode()).hexdigest(),
            "ab" * 32,
            "2000 rows",
            tuple(p for s in parents for p in names[s]),
        )
        for stage, parents in shape.items()
        for ref in names[stage]
    )


def fake_report(
    *targets: TargetReport, notes: tuple[str, ...] = ("class 'owl' has only 3 images",)
) -> ReportData:
    return ReportData(
        title="Demo run",
        created="2026-11-16 03:44 UTC",
        version="0.1.0",
        profile="paper",
        targets=targets or (fake_target(),),
        index=IndexReport(
            24_000,
            512,
            128,
            "flat",
            "paired",
            {1: 0.31, 2: 0.42, 4: 0.55, 8: 0.67, 16: 0.78, 32: 0.86, 64: 0.93, 128: 1.0},
            tuple((0.42 - 0.05 * (1 - 0.6**i), 0.61 - 0.2 * (1 - 0.5**i)) for i in range(10)),
        ),
        timings=(
            Timing("corpus-shard", 12, 41.2),
            Timing("embedding-shard", 12, 96.4),
            Timing("pairs", 1, 8.1),
            Timing("centroids", 1, 5.4),
            Timing("index", 1, 2.2),
            Timing("queries", 1, 14.9),
            Timing("candidates", 1, 1.3),
            Timing("training-set", 1, 7.7),
            Timing("model", 1, 181.0),
        ),
        lineage=fake_lineage(),
        settings={
            "profile": "paper",
            "index": {"cells": 128, "method": "paired"},
            "train": {"learning_rate": 6.4e-4},
        },
        notes=notes,
    )
