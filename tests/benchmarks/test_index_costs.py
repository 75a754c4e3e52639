"""What a build is said to cost, and with how many cells plain k-means is shown."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.index import cells
from benchmarks.index.costs import Costs, total
from benchmarks.index.ours import Build, Data, built
from benchmarks.index.peers.measure import Time
from benchmarks.index.world import World


@cache
def data() -> Data:
    return Data.draw(World(0), 3000, 600, 100)


def test_a_step_that_is_done_twice_adds_up() -> None:
    costs = Costs()
    assert [costs.measured("squares", lambda: sum(n * n for n in range(100_000))) for _ in range(2)]
    once = Costs()
    once.measured("squares", lambda: None)
    assert costs.steps["squares"].cpu > once.steps["squares"].cpu >= 0
    assert total([Time(1, 2), Time(3, 4)]) == Time(4, 6) and total([]) == Time(0, 0)


def test_our_build_counts_all_that_it_does() -> None:
    build = Build(data(), 0, 16)
    index = built(build, "sq8u")
    steps = {"q(p)", "kmeans", "paired", "centred", "routed", "spilled", "choice"}
    assert set(build.costs) == steps and all(took.cpu > 0 for took in build.costs.values())
    assert index.took.cpu > total(build.costs.values()).cpu  # vectors are added too
    asked = {kind: data().costs.steps[f"q(p) of {kind} texts"].cpu for kind in ("training", "tuning")}
    assert build.costs["q(p)"].cpu == pytest.approx(sum(asked.values()))


def test_plain_kmeans_gets_more_cells_until_they_cost_more() -> None:
    found = cells.sweep(data(), 0, (4, 16, 64, 1024, 2048, 3000))
    rows = [*found["rows"].values()]
    costs = [row["tuning_compared"] for row in rows]
    assert found["best"]["tuning_compared"] == min(costs) in costs[-2:] and len(rows) < 5
    for row in rows:
        assert row["compared"] == pytest.approx(row["recall_at_1"] + row["cells"] / 3000)
        assert row["trained_on"] == min(3000, max(600, 39 * row["cells"]))


def test_ratios_count_centroids_too() -> None:
    best, same, ours = (
        {"cells": n, "compared": share} for n, share in ((2048, 0.08), (512, 0.2), (512, 0.01))
    )
    world = {"ours": ours, "kmeans": {"rows": {"512": same, "2048": best}, "best": best}}
    ratios = {"compared_ratio_kmeans_best_cells": 8, "compared_ratio_kmeans_same_cells": 20}
    assert cells.line([world, world]) == pytest.approx({"kmeans_best_cells": 2048, **ratios})
