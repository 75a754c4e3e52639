"""Our index on a generated world, step by step, as a build makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from benchmarks.index.costs import Costs, total
from benchmarks.index.peers.measure import Built, Problem, Time
from benchmarks.index.world import DIM, World
from mudg_core.index import ivf, kmeans
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.codes import vector_bytes
from mudg_core.index.neighbors import nearest
from mudg_core.index.part import Placement, spill
from mudg_core.index.router import first_cells, fit
from mudg_core.index.routing import Probing
from mudg_core.index.search import Searcher
from mudg_core.index.training_data import held_out
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
    costs: Costs = field(default_factory=Costs, init=False)  # of q(p)

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
    def truth(self) -> Truth:
        return Truth(self)

    def problem(self) -> Problem:
        """The same, as the peers are given it."""
        images = normalised(self.gallery)
        return Problem(images, self.tuning, self.truth["tuning"], self.report, self.truth["report"])


class Truth(dict[str, Int64]):
    """The ten nearest images of every text, exactly, by the kind of texts; computed when first asked for."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        self._data = data

    def __missing__(self, kind: str) -> Int64:
        gallery = self._data.gallery
        search = partial(nearest, getattr(self._data, kind), gallery, np.arange(len(gallery)), KEEP)
        self[kind] = self._data.costs.measured(f"q(p) of {kind} texts", search).rows[:, :NEAREST]
        return self[kind]


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
        self.costs = Costs()

    def kmeans(self) -> Variant:
        """Plain k-means on as many images of the gallery as there are training texts."""
        return self._placed("kmeans", self.plain, self._some_images, PAPER_ITERATIONS)

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
        wider = self._spilled(home, first)
        coarse = self._fitted("spilled", first, wider).coarse
        return Variant("spilled", coarse, self._spilled(home, coarse))

    def all(self) -> list[Variant]:
        return [self.kmeans(), self.paired(), self.centred, self.routed, self.spilled]

    def _some_images(self) -> tuple[Float32, Float32]:
        return (images := some_images(self.data, len(self.data.training), self.seed)), images

    def _paired(self, name: str, centring: Centring, iterations: int) -> Variant:
        used = slice(0, len(self.data.training) - held_out(len(self.data.training)))

        def pairs() -> tuple[Float32, Float32]:
            images = centring.images(normalised(self.data.gallery[self.pairs[used, 0]]))
            return images, centring.texts(self.data.training[used])

        return self._placed(name, centring, pairs, iterations)

    def _placed(
        self, name: str, centring: Centring, pairs: Callable[[], tuple[Float32, Float32]], iterations: int
    ) -> Variant:
        def work() -> Variant:
            return placed(name, self.data, centring, *pairs(), self.cells, iterations, self.seed)

        return self.costs.measured(name, work)

    def _fitted(self, name: str, coarse: Coarse, placement: Placement) -> Variant:
        def work() -> Variant:
            fitted = fit(coarse, self.data.training, placement.homes(self.pairs), self.seed)
            return Variant(name, fitted.coarse, placement)

        return self.costs.measured(name, work)

    def _spilled(self, home: Placement, coarse: Coarse) -> Placement:
        def work() -> Placement:
            return spill(home, self.pairs, *first_cells(coarse, self.data.training), SPILL)

        return self.costs.measured("spilled", work)


def some_images(data: Data, count: int, seed: int) -> Float32:
    rows = np.random.default_rng(seed).permutation(len(data.gallery))[:count]
    return normalised(data.gallery[rows])


def placed(
    name: str,
    data: Data,
    centring: Centring,
    images: Float32,
    targets: Float32,
    cells: int,
    iterations: int,
    seed: int,
) -> Variant:
    """k-means, and the cell of every image of the gallery."""
    clustering = kmeans.cluster(images, targets, cells, iterations, seed)
    coarse = Coarse.unrouted(centring, clustering.centroids)
    rows = np.arange(len(data.gallery))
    blocks = np.array_split(rows, -(-len(rows) // kmeans.TILE))
    homes = np.concatenate([coarse.cells_of(normalised(data.gallery[block])) for block in blocks])
    return Variant(name, coarse, Placement(rows, homes))


class Build:
    """All that `mudg index build` does with `index.variant=auto`: every variant, and the choice of one on
    tuning queries. `costs` are those of its steps, q(p) included."""

    def __init__(self, data: Data, seed: int, cells: int = CELLS) -> None:
        self.data, ours = data, Ours(data, seed, cells=cells)
        self.variants = ours.all()
        data.truth["tuning"]  # q(p) is a step of its own, and no part of the choice
        self.chosen = ours.costs.measured("choice", lambda: chosen(data, self.variants))
        self._steps = ours.costs.steps

    @property
    def costs(self) -> dict[str, Time]:
        """A build computes q(p) of texts that it trains on and of those that it chooses with."""
        searches = [self.data.costs.steps[f"q(p) of {kind} texts"] for kind in ("training", "tuning")]
        return {"q(p)": total(searches), **self._steps}


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


def built(build: Build, code: str) -> Built:
    """Ours, as the peers are measured: every probability mass and number of re-ranked hits worth trying."""
    data, variant = build.data, build.chosen
    opened, costs = filled(build, code)
    sweep = [
        {"probes": 64, "mass": mass, "rerank": rerank}
        for mass in (0.6, 0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.95)
        for rerank in (0, 11, 14, 20)
    ]
    read = _Reads(opened)
    size = vector_bytes(code, DIM) * len(variant.placement.rows) + 2 * data.gallery.size
    params = {"code": code, "variant": variant.name, "cells": variant.coarse.cells}
    return Built(params, total(costs.values()), size, sweep, read.search, read.count)


def filled(build: Build, code: str) -> tuple[Searcher, dict[str, Time]]:
    """The index of a build with its vectors in it, and what all of its steps have cost."""
    costs = Costs()
    opened = costs.measured("populate", partial(searcher, build.data, build.chosen, code))
    return opened, build.costs | costs.steps


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
