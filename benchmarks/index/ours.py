"""Our index on a generated world, step by step, as a build makes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from benchmarks.index.peers.measure import Built, Problem, timed
from benchmarks.index.world import DIM, World
from mudg_core.index import ivf, kmeans
from mudg_core.index.coarse import Centring, Coarse, Probing
from mudg_core.index.codes import vector_bytes
from mudg_core.index.neighbors import Neighbors, nearest
from mudg_core.index.pairs import held_out
from mudg_core.index.router import first_cells, fit
from mudg_core.index.search import Searcher
from mudg_core.index.spill import Placement, spill
from mudg_core.index.variants import Trial, choose_variant, trial
from mudg_core.index.vectors import Float16, Float32, Int64, normalised

CELLS, PAPER_ITERATIONS, ITERATIONS = 512, 10, 20
NEAREST, KEEP = 10, 11
GAIN, SPILL = 0.7, 0.1


@dataclass(frozen=True)
class Data:
    """A world drawn: the gallery in half precision, as embeddings are stored, and queries apart."""

    gallery: Float16
    training: Float32
    tuning: Float32
    report: Float32

    @classmethod
    def draw(cls, world: World, images: int, texts: int, queries: int) -> Data:
        gallery = np.empty((images, DIM), np.float16)
        start = 0
        for block in world.images(images):
            gallery[start : start + len(block)] = block
            start += len(block)
        kinds = ((texts, "training"), (queries, "tuning"), (queries, "report"))
        drawn = [np.concatenate(list(world.texts(rows, kind))) for rows, kind in kinds]  # type: ignore[arg-type]
        return cls(gallery, *drawn)

    @cached_property
    def neighbors(self) -> Neighbors:
        """Of all texts, exactly."""
        texts = np.concatenate([self.training, self.tuning, self.report])
        return nearest(texts, self.gallery, np.arange(len(self.gallery)), KEEP)

    @cached_property
    def truth(self) -> dict[str, Int64]:
        ends = np.cumsum([len(self.training), len(self.tuning)])
        parts = np.split(self.neighbors.rows[:, :NEAREST], ends)
        return dict(zip(("training", "tuning", "report"), parts, strict=True))

    def problem(self) -> Problem:
        """The same, as the peers are given it."""
        images = normalised(self.gallery)
        return Problem(images, self.tuning, self.truth["tuning"], self.report, self.truth["report"])


@dataclass(frozen=True)
class Shard:
    """What the stages read of an embedding shard, from memory."""

    images: Float16
    texts: Float16
    rows: Int64


@dataclass(frozen=True)
class Variant:
    name: str
    coarse: Coarse
    placement: Placement


class Ours:
    """Every variant on one world. `pairs` are the neighbours that are learned from; exact ones by default."""

    def __init__(self, data: Data, seed: int, pairs: Int64 | None = None, cells: int = CELLS) -> None:
        self.data, self.seed, self.cells = data, seed, cells
        self.pairs = data.truth["training"] if pairs is None else pairs
        zero = np.zeros(DIM, np.float32)
        image, text = (
            m.mean(axis=0, dtype=np.float64).astype(np.float32) for m in (data.gallery, data.training)
        )
        self.plain, self.centring = Centring(zero, zero), Centring(image, text)

    def kmeans(self) -> Variant:
        """Plain k-means on as many images of the gallery as there are training texts."""
        chosen = np.random.default_rng(self.seed).permutation(len(self.data.gallery))[
            : len(self.data.training)
        ]
        images = normalised(self.data.gallery[chosen])
        return self._placed("kmeans", self.plain, images, images, PAPER_ITERATIONS)

    def paired(self) -> Variant:
        return self._paired("paired", self.plain, PAPER_ITERATIONS)

    @cached_property
    def centred(self) -> Variant:
        return self._paired("centred", self.centring, ITERATIONS)

    @cached_property
    def routed(self) -> Variant:
        return self._fitted("routed", self.centred.coarse, self.centred.placement)

    @cached_property
    def spilled(self) -> Variant:
        home, first = self.centred.placement, self.routed.coarse
        wider = spill(home, self.pairs, *first_cells(first, self.data.training), SPILL)
        coarse = self._fitted("", first, wider).coarse
        return Variant(
            "spilled", coarse, spill(home, self.pairs, *first_cells(coarse, self.data.training), SPILL)
        )

    def all(self) -> list[Variant]:
        return [self.kmeans(), self.paired(), self.centred, self.routed, self.spilled]

    def _paired(self, name: str, centring: Centring, iterations: int) -> Variant:
        used = slice(0, len(self.data.training) - held_out(len(self.data.training)))
        images = centring.images(normalised(self.data.gallery[self.pairs[used, 0]]))
        return self._placed(name, centring, images, centring.texts(self.data.training[used]), iterations)

    def _placed(
        self, name: str, centring: Centring, images: Float32, targets: Float32, iterations: int
    ) -> Variant:
        found = kmeans.cluster(images, targets, self.cells, iterations, self.seed)
        coarse = Coarse.unrouted(centring, found.centroids)
        rows = np.arange(len(self.data.gallery))
        blocks = np.array_split(rows, -(-len(rows) // kmeans.TILE))
        cells = np.concatenate([coarse.cells_of(normalised(self.data.gallery[block])) for block in blocks])
        return Variant(name, coarse, Placement(rows, cells))

    def _fitted(self, name: str, coarse: Coarse, placement: Placement) -> Variant:
        fitted = fit(coarse, self.data.training, placement.homes(self.pairs), self.seed)
        return Variant(name, fitted.coarse, placement)


def trials(data: Data, variants: Sequence[Variant], kind: str, gain: float = GAIN) -> list[Trial]:
    queries, truth = getattr(data, kind), data.truth[kind]
    return [trial(v.name, v.coarse, v.placement, queries, truth, gain) for v in variants]


def chosen(data: Data, variants: Sequence[Variant]) -> Variant:
    """As a build chooses: on tuning queries."""
    best = choose_variant(trials(data, variants, "tuning"))
    return next(variant for variant in variants if variant.name == best.variant)


def searcher(data: Data, variant: Variant, code: str) -> Searcher:
    """In memory, with exact features from the embeddings themselves."""
    index = ivf.blank(code, variant.coarse.cells, normalised(data.gallery[:65_536]))
    ivf.populate(index, blocks(data, variant.placement))
    spilled = len(variant.placement.rows) > len(data.gallery)
    return Searcher(variant.coarse, [index], lambda rows: data.gallery[rows], spilled)


def blocks(data: Data, placement: Placement) -> Iterator[tuple[Int64, Int64, Float32]]:
    for at in np.array_split(np.arange(len(placement.rows)), -(-len(placement.rows) // 65_536)):
        rows = placement.rows[at]
        yield rows, placement.cells[at], normalised(data.gallery[rows])


def built(data: Data, variant: Variant, code: str) -> Built:
    """Ours, as the peers are measured: every probability mass and number of re-ranked hits worth trying."""
    opened, took = timed(partial(searcher, data, variant, code))
    sweep = [
        {"probes": 64, "mass": mass, "rerank": rerank}
        for mass in (0.6, 0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.95)
        for rerank in (0, 11, 14, 20)
    ]
    read = _Reads(opened)
    size = vector_bytes(code, DIM) * len(variant.placement.rows) + 2 * data.gallery.size
    params = {"code": code, "variant": variant.name, "cells": variant.coarse.cells}
    return Built(params, took, size, sweep, read.search, read.count)


class _Reads:
    """Counts what searches read, as the peers' measurement asks for it."""

    def __init__(self, opened: Searcher) -> None:
        self.opened, self.read = opened, 0

    def search(self, queries: Float32, params: dict[str, Any]) -> Int64:
        probing = Probing(params["probes"], params["mass"], GAIN)
        found = self.opened.search(queries, NEAREST, probing, params["rerank"])
        self.read += int(found.read.sum())
        return found.hits.rows

    def count(self) -> int:
        count, self.read = self.read, 0
        return count
