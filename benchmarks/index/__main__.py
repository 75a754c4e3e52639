"""`make bench-index`: our index beside plain k-means, the paper's, hnswlib, ScaNN and autofaiss, one thread.

python -m benchmarks.index [scan] [cells] [build] [speed] [peers] [large] [demo]

Everything in CPU time; queries that tune and queries that report are apart. Without names all parts run.
Figures are kept in benchmarks/results/index.json, part by part with the commit they were measured at; the
last line printed is one JSON object with all of them.

  scan    what each variant reads on three tight worlds and a loose one
  cells   plain k-means with its own best number of cells beside our index, on three tight worlds
  build   CPU seconds of every step of our build, from q(p) on
  speed   our steps beside faiss' own and beside a bare matrix product
  peers   queries a second of ours and of the peers, each in an environment of its own
  large   peak memory with a gallery of a million images
  demo    what each variant reads on embeddings of the demo corpus
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from pydantic import TypeAdapter
from threadpoolctl import threadpool_limits

from benchmarks.index import bootstrap, cells, demo_corpus, qp, speed
from benchmarks.index.curves import Curve, Point, best_qps, plot
from benchmarks.index.ours import CELLS, Build, Data, built, filled, trials
from benchmarks.index.peer_runs import PEERS, run_peer
from benchmarks.index.peers import measure
from benchmarks.index.world import LOOSE, TIGHT, World
from benchmarks.parts import Figures, Found, console, kept_as, parser_of, run_parts
from benchmarks.peer_environment import PeerError
from benchmarks.record import RESULTS
from mudg_core.index.variants import Trial

QUERIES, WANTED = 4_000, 0.9
CODE = "sq8u"


def main() -> None:
    parser = parser_of(__doc__, PARTS, tiny=False)
    parser.add_argument("--seeds", type=int, default=3, help="tight worlds; peers and speed get the first")
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--texts", type=int, default=48_000)
    parser.add_argument("--demo-rows", type=int, default=200_000)
    parser.add_argument("--peer-seconds", type=float, default=7200, help="the longest a peer may take")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        run_parts(asked.parts or PARTS, lambda name: PARTS[name](asked), kept_as("index"), told=False)


def scan(asked: argparse.Namespace) -> Found:
    worlds = [world(seed, True, asked.images, asked.texts) for seed in range(asked.seeds)]
    loose = world(0, False, asked.images, asked.texts)
    line = {
        "scan_ratio_kmeans": statistics.mean(found.ratio("kmeans") for found in worlds),
        "scan_ratio_paired": statistics.mean(found.ratio("paired") for found in worlds),
        "extra_storage": max(found.trials[found.chosen].stored for found in worlds) - 1,
        "loose_scan_ratio_kmeans": loose.ratio("kmeans"),
    }
    return line, {"tight": [found.table() for found in worlds], "loose": loose.table()}


def kmeans_cells(asked: argparse.Namespace) -> Found:
    worlds = []
    for seed in range(asked.seeds):
        console.print(f"world {seed}: ours, and plain k-means with more and more cells …")
        worlds.append(cells.compare(drawn(seed, True, asked.images, asked.texts), seed))
        console.print_json(json.dumps(worlds[-1]))
    return cells.line(worlds), {"images": asked.images, "texts": asked.texts, "tight": worlds}


def own_build(asked: argparse.Namespace) -> Found:
    data = drawn(0, True, asked.images, asked.texts)
    detail = {str(count): own_costs(Build(data, 0, count)) for count in (CELLS, 2 * CELLS)}
    return {"build_cpu_seconds": detail[str(2 * CELLS)]["cpu_seconds"]}, detail


def own_costs(build: Build) -> Figures:
    steps = {name: took.cpu for name, took in filled(build, CODE)[1].items()}
    (trial,) = trials(build.data, [build.chosen], "report")
    return {"chosen": build.chosen.name, "cpu_seconds": sum(steps.values()), "steps": steps, **_row(trial)}


def against_faiss(asked: argparse.Namespace) -> Found:
    found = world(0, True, asked.images, asked.texts)
    data, variants = found.data, {variant.name: variant for variant in found.build.variants}
    console.print("our speed beside faiss' …")
    product = qp.measure(len(data.training), len(data.gallery))
    adding = speed.add_ratios(data, variants["paired"])
    line = {
        "qp_gemm_fraction": product["qp_gemm_fraction"],
        "kmeans_iter_ratio": speed.iteration_ratio(data, variants["paired"]),
        "add_ratio": adding[str(CELLS)],
        "sharded_identical": speed.sharded_identical(data),
    }
    line |= speed.rerank_loss(data, variants[found.chosen])
    return line, {"qp": product, "adding": adding, "bootstrap": bootstrap.measure(data, variants["centred"])}


def against_peers(asked: argparse.Namespace) -> Found:
    found = world(0, True, asked.images, asked.texts)
    builds = (found.build, Build(found.data, 0, 2 * CELLS))
    own = [point for build in builds for point in own_points(build)]
    curves = [Curve("mudg", own), *peers(found.data, asked.peer_seconds)]
    plot(curves, RESULTS / "index.svg")
    fastest = {curve.name: best_qps(curve.points, WANTED) for curve in curves}
    qps = {name: point.qps_cpu for name, point in fastest.items() if point}
    line = {f"qps_ratio_{name}": qps["mudg"] / other for name, other in qps.items() if name != "mudg"}
    return line, {curve.name: TypeAdapter(list[Point]).dump_python(list(curve.points)) for curve in curves}


def large(_: argparse.Namespace) -> Found:
    console.print("a million images …")
    with tempfile.TemporaryDirectory(prefix="mudg-bench-") as folder:
        command = [sys.executable, "-m", "benchmarks.index.large", folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=2 * 3600)
    found: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return {"peak_gb": found["peak_gb"]}, found


def demo(asked: argparse.Namespace) -> Found:
    console.print("the demo corpus …")
    found = demo_corpus.measure(Path(".mudg/bench-demo"), asked.demo_rows, CELLS, 3 * 3600)
    return {"demo_scan_ratio_kmeans": found["ratio"]}, found


PARTS: dict[str, Callable[[argparse.Namespace], Found]] = {
    "scan": scan,
    "cells": kmeans_cells,
    "build": own_build,
    "speed": against_faiss,
    "peers": against_peers,
    "large": large,
    "demo": demo,
}


class Measured:
    """All variants on one world, and what each reads on its report queries."""

    def __init__(self, build: Build) -> None:
        self.build, self.data, self.chosen = build, build.data, build.chosen.name
        self.trials = {found.variant: found for found in trials(self.data, build.variants, "report")}
        ablation = trials(self.data, build.variants[3:], "report", gain=0.0)
        self.by_score = {found.variant: found for found in ablation}

    def read(self, name: str) -> float:
        return self.trials[name].read_for_recall_at_1 or 1.0

    def ratio(self, name: str) -> float:
        return self.read(name) / self.read(self.chosen)

    def table(self) -> dict[str, Any]:
        """The ablation: share read for R@1 and for R@10 of 0.9, and vectors stored an image."""
        rows = {name: _row(found) for name, found in self.trials.items()}
        rows |= {f"{name}, cells by score alone": _row(found) for name, found in self.by_score.items()}
        return {"chosen": self.chosen, **rows}


def _row(found: Trial) -> dict[str, float | None]:
    return {
        "recall_at_1": found.read_for_recall_at_1,
        "recall_at_10": found.read_for_recall_at_10,
        "stored": found.stored,
    }


@cache
def world(seed: int, tight: bool, images: int, texts: int) -> Measured:
    console.print(f"world {seed}, {'tight' if tight else 'loose'}: drawing, q(p), training …")
    measured = Measured(Build(drawn(seed, tight, images, texts), seed))
    console.print_json(json.dumps(measured.table()))
    return measured


def drawn(seed: int, tight: bool, images: int, texts: int) -> Data:
    return Data.draw(World(seed, TIGHT if tight else LOOSE), images, texts, QUERIES)


def own_points(build: Build) -> list[Point]:
    console.print("our queries a second …")
    found = list(measure.measure(built(build, CODE), build.data.problem()))
    return TypeAdapter(list[Point]).validate_python(found)


def peers(data: Data, seconds: float) -> list[Curve]:
    """A peer that fails or takes too long is said so and left out: the others' figures stand."""
    curves = []
    with tempfile.TemporaryDirectory(prefix="mudg-bench-") as folder:
        for name, array in data.problem()._asdict().items():
            np.save(Path(folder) / f"{name}.npy", array)
        for name in PEERS:
            console.print(f"{name} …")
            try:
                curves.append(run_peer(name, Path(folder), timeout=seconds))
            except PeerError as error:
                console.print(f"[red]{error}[/]", highlight=False)
    return curves


if __name__ == "__main__":
    main()
