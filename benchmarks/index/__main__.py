"""`make bench-index`: our index beside plain k-means, the paper's, hnswlib, ScaNN and autofaiss, one thread.

python -m benchmarks.index [--seeds 3] [--images 200000] [--skip-peers] [--skip-demo] [--skip-large]

Everything in CPU time; queries that tune and queries that report are apart. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from pydantic import TypeAdapter
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.index import bootstrap, demo_corpus, qp, speed
from benchmarks.index.curves import Curve, Point, best_qps, plot
from benchmarks.index.ours import CELLS, Data, Ours, Variant, built, chosen, trials
from benchmarks.index.peer_runs import PEERS, run_peer
from benchmarks.index.peers import measure
from benchmarks.index.world import LOOSE, TIGHT, World
from benchmarks.record import RESULTS, record
from mudg_core.index.variants import Trial

TEXTS, QUERIES, WANTED = 48_000, 4_000, 0.9
console = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="worlds for ours; peers get the first")
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--texts", type=int, default=TEXTS)
    parser.add_argument("--demo-rows", type=int, default=200_000)
    for part in ("peers", "demo", "large"):
        parser.add_argument(f"--skip-{part}", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        figures = run(arguments)
    record("index", figures)
    sys.stdout.write(json.dumps(figures["line"]) + "\n")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    worlds = [_world(seed, TIGHT, arguments) for seed in range(arguments.seeds)]
    loose = _world(0, LOOSE, arguments)
    data, variants = worlds[0].data, worlds[0].variants
    best = chosen(data, variants)
    line: dict[str, Any] = _scan_line(worlds, loose)
    detail: dict[str, Any] = {"read": [w.table() for w in worlds], "loose": loose.table()}
    console.print("our speed beside faiss' …")
    line |= {"kmeans_iter_ratio": speed.iteration_ratio(data, variants[1])}
    line |= {"add_ratio": speed.add_ratio(data, variants[1])} | speed.rerank_loss(data, best)
    line |= {"sharded_identical": speed.sharded_identical(data)}
    detail["bootstrap"] = bootstrap.measure(data, variants[2])
    console.print("q(p) beside a matrix product …")
    detail["qp"] = qp.measure(len(data.training), len(data.gallery))
    line["qp_gemm_fraction"] = detail["qp"]["qp_gemm_fraction"]
    curves = [Curve("mudg", _own_points(data, best))]
    if not arguments.skip_peers:
        curves += _peers(data)
        line |= _speed_line(curves)
        plot(curves, RESULTS / "index.svg")
    if not arguments.skip_large:
        line["peak_gb"] = _keep(detail, "large", _large())["peak_gb"]
    if not arguments.skip_demo:
        found = demo_corpus.measure(Path(".mudg/bench-demo"), arguments.demo_rows, CELLS, 3 * 3600)
        line["demo_scan_ratio_kmeans"] = _keep(detail, "demo", found)["ratio"]
    detail["points"] = {c.name: TypeAdapter(list[Point]).dump_python(list(c.points)) for c in curves}
    return {"line": {name: _short(value) for name, value in line.items()}, **detail}


def _keep(detail: dict[str, Any], name: str, found: dict[str, Any]) -> dict[str, Any]:
    detail[name] = found
    return found


class Measured:
    """All variants on one world, and what each reads on its report queries."""

    def __init__(self, data: Data, variants: list[Variant]) -> None:
        self.data, self.variants = data, variants
        self.chosen = chosen(data, variants).name
        self.trials = {found.variant: found for found in trials(data, variants, "report")}
        ablation = trials(data, variants[3:], "report", gain=0.0)
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


def _world(seed: int, looseness: Any, arguments: argparse.Namespace) -> Measured:
    console.print(f"world {seed}, {'tight' if looseness == TIGHT else 'loose'}: drawing, q(p), training …")
    data = Data.draw(World(seed, looseness), arguments.images, arguments.texts, QUERIES)
    measured = Measured(data, Ours(data, seed).all())
    console.print_json(json.dumps(measured.table()))
    return measured


def _scan_line(worlds: Sequence[Measured], loose: Measured) -> dict[str, Any]:
    return {
        "scan_ratio_kmeans": statistics.mean(world.ratio("kmeans") for world in worlds),
        "scan_ratio_paired": statistics.mean(world.ratio("paired") for world in worlds),
        "extra_storage": max(world.trials[world.chosen].stored for world in worlds) - 1,
        "loose_scan_ratio_kmeans": loose.ratio("kmeans"),
    }


def _own_points(data: Data, best: Variant) -> list[Point]:
    console.print("our queries a second …")
    found = list(measure.measure(built(data, best, "sq8"), data.problem()))
    return TypeAdapter(list[Point]).validate_python(found)


def _peers(data: Data) -> list[Curve]:
    with tempfile.TemporaryDirectory(prefix="mudg-bench-") as folder:
        for name, array in data.problem()._asdict().items():
            np.save(Path(folder) / f"{name}.npy", array)
        curves = []
        for name in PEERS:
            console.print(f"{name} …")
            curves.append(run_peer(name, Path(folder), timeout=7200))
        return curves


def _speed_line(curves: Sequence[Curve]) -> dict[str, Any]:
    best = {curve.name: best_qps(curve.points, WANTED) for curve in curves}
    ours = best["mudg"]
    assert ours is not None, "our own sweep must reach the wanted recall"
    return {
        f"qps_ratio_{name}": ours.qps_cpu / other.qps_cpu if other else None
        for name, other in best.items()
        if name != "mudg"
    }


def _large() -> dict[str, Any]:
    console.print("a million images …")
    with tempfile.TemporaryDirectory(prefix="mudg-bench-") as folder:
        command = [sys.executable, "-m", "benchmarks.index.large", folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=2 * 3600)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
