"""Costs of the stages: the paper's scale against figures worked out on paper, and small worlds by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mudg_core.index import ivf
from mudg_core.index import router as index_router
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.router import EPOCHS
from mudg_core.plan.cost import Cost
from mudg_core.plan.index_stages import (
    embed,
    exchange,
    index_bytes,
    index_costs,
    index_sizes,
    pair,
    populate,
    router,
    spill,
    train,
)
from mudg_core.plan.target_stages import target_costs
from mudg_core.plan.workload import Workload
from tests.core.index.making import sphere
from tests.core.plan.making import paper, small


def costs(work: Workload) -> list[Cost]:
    return index_costs(work) + target_costs(work)


def test_the_papers_scale() -> None:
    """2 x 20e6 x 20e6 x 768; ten times 2 x 20e6 x 131072 x 768; 2 x 2.17e9 x 131072 x 768."""
    work = paper()
    assert pair(work).flop == 614_400_000_000_000_000
    assert train(work).flop == pytest.approx(4.0265e16, rel=1e-4)
    assert populate(work).flop == pytest.approx(4.3688e17, rel=1e-4)


def test_the_papers_index_is_851_gb() -> None:
    """2.17e9 vectors of 384 B and an id of 8 B are 850.64e9 B; the centroids are 0.40e9 B more."""
    made = populate(paper())
    assert made.written == 850_640_000_000 + 402_653_184
    assert round(made.written / 1e9) == 851


def test_exchange_of_an_iteration() -> None:
    """131072 x 768 floats; the sums are as many doubles, and come with 131072 counts of 8 B."""
    assert (exchange(paper()).centroids_out, exchange(paper()).sums_back) == (402_653_184, 806_354_944)
    assert exchange(paper()).sums_in_single == 403_701_760


def test_embedding_the_papers_corpus() -> None:
    """162.03 and 13.30 GFLOP a pair (counted by torch in test_towers); two vectors of 768 halves a row."""
    made = embed(paper())
    assert made.flop == 2_170_000_000 * (162_025_537_536 + 13_299_683_328)
    assert made.written == 2_170_000_000 * 3072


def test_pair_by_hand() -> None:
    """100 texts against 1000 images of 128 dimensions."""
    made = pair(small())
    assert made.flop == 2 * 100 * 1000 * 128
    assert made.moved == 4 * (100 * 128 + 1000 * 128 + 2 * 100 * 1000)
    assert made.read == 2 * 128 * (100 + 1000)
    assert made.written == 100 * (
        10 * 11 * 12 + 10 * 12 + 2 * 2 * 128
    )  # ten shards; a row and a cosine: 12 B
    assert made.memory == 4 * 128 * (100 + 100)  # texts and one shard


def test_q_of_p_searches_as_many_images_as_it_is_told() -> None:
    whole = replace(paper(), pair_images=2_170_000_000)
    assert pair(whole).flop == pytest.approx(6.6662e19, rel=1e-4)  # 2 x 20e6 x 2.17e9 x 768
    assert pair(whole).memory == pair(paper()).memory


def test_train_by_hand() -> None:
    """Three iterations of 100 pairs against 10 cells, two workers."""
    made = train(small())
    assert made.flop == 3 * 2 * 100 * 10 * 128
    sent = 4 * 10 * 128 + (8 * 10 * 128 + 8 * 10)
    products = 4 * (100 * 128 + 10 * 128 + 2 * 100 * 10)
    assert made.moved == 3 * (products + 4 * 100 * 128 + 2 * sent)
    assert made.memory == 2 * 4 * 100 * 128 + 2 * sent
    assert made.written == 4 * 10 * 128


def test_memory_is_set_by_settings_and_not_by_the_corpus() -> None:
    few, many = small(), small(corpus={"rows": 100_000})
    assert embed(many).memory == embed(few).memory
    assert pair(many).memory == pair(few).memory
    assert train(many).memory == train(few).memory
    assert populate(many).memory == populate(few).memory


def test_populate_holds_a_part_and_the_centroids_in_each_worker() -> None:
    one = 200 * (4 * 128 + 8) + 4 * 128 * (10 + 100)
    assert populate(small()).memory == 2 * one
    assert populate(small(index={"rows_per_part": 1000})).memory == one + 800 * (4 * 128 + 8)  # a single part


def test_comparing_variants_trains_each_kind_of_centroids_and_may_spill() -> None:
    one, all_ = small(), small(index={"variant": "auto"})
    assert train(all_).flop == 3 * train(one).flop
    assert train(all_).memory == train(one).memory
    assert populate(all_).flop == 3 * populate(one).flop  # every image to its cell, for each kind
    assert populate(all_).written - populate(one).written == 100 * (4 * 128 + 8)  # a tenth of the rows


@pytest.mark.parametrize("code", ["flat", "fp16", "sq8", "sq4"])
def test_a_real_index_is_as_large_as_planned(code: str, tmp_path: Path) -> None:
    work = small(index={"code": code})
    images, rows = sphere(1000, 128), np.arange(1000)
    index = ivf.populate(ivf.blank(code, 10, images), [(rows, rows % 10, images)])
    ivf.write(index, tmp_path / "index.faiss")
    centroids = 4 * 10 * 128  # are a file of their own
    overhead = (tmp_path / "index.faiss").stat().st_size - index_bytes(work, code) + centroids
    assert 0 <= overhead < 2_000  # headers, list lengths, a scalar quantiser's ranges


def test_codes_are_compared() -> None:
    sizes = index_sizes(paper())
    assert list(sizes) == ["flat", "fp16", "sq8", "sq8u", "sq6", "sq4", "pq64"]
    codebook, centroids = 256 * 768 * 4, 402_653_184
    assert sizes["pq64"] == 2_170_000_000 * 72 + codebook + centroids


def test_router_by_hand() -> None:
    """95 texts to fit, 5 to stop by, 10 cells: forward and back to the weights for twelve epochs, the check
    thirteen times, and once all texts for their first cell. One step an epoch. `spilled` fits twice."""
    made = router(small(index={"variant": "routed"}))
    each = 2 * 10 * 128
    assert made.flop == each * (12 * 2 * 95 + 13 * 5 + 100)
    assert made.moved == 4 * 12 * (16 * 10 * 128 + 12 * 512 * 10)
    assert made.read == 100 * 2 * 128 + 1000 * 16
    assert made.written == 2 * 4 * 10 * 128 + 100 * 12
    assert router(small(index={"variant": "spilled"})).flop == 2 * made.flop
    auto = router(small(index={"variant": "auto"}))
    assert (auto.flop, auto.written, auto.memory) == (3 * made.flop, 2 * made.written, made.memory)


def test_router_as_its_products_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """All epochs of a real fit, forward and back; the first cells of all texts are not in it."""
    monkeypatch.setattr(index_router, "PATIENCE", EPOCHS + 1)
    texts_multiplied: list[int] = []
    for name in ("routing_scores", "_gradients"):
        monkeypatch.setattr(index_router, name, _counting(getattr(index_router, name), texts_multiplied))
    texts, homes = sphere(100, 128), np.arange(1000).reshape(100, 10, 1) % 10
    nothing = np.zeros(128, np.float32)
    level = Coarse(
        Centring(nothing, nothing), sphere(10, 128), sphere(10, 128), np.zeros(10, np.float32), False
    )
    index_router.fit(level, texts, homes, seed=0)
    planned = router(small(index={"variant": "routed"})).flop
    assert 2 * sum(texts_multiplied) * 10 * 128 == planned - 2 * 100 * 10 * 128


def _counting(function: Callable[..., Any], counts: list[int]) -> Callable[..., Any]:
    """The same function; it notes how many texts it was given."""

    def counted(inputs: Any, *more: Any) -> Any:
        counts.append(len(inputs))
        return function(inputs, *more)

    return counted


def test_spill_by_hand() -> None:
    """The votes of 100 texts in ten shards, over all rows once and by part once more."""
    made = spill(small(index={"variant": "spilled"}))
    assert made.flop == 0 and made.written == 0
    assert made.moved == 10 * (24 * 100 * 10 * 11 + 2 * 16 * 1000)
    assert made.read == 100 * 10 * 11 * 12 + 16 * 1000


@pytest.mark.parametrize(
    ("variant", "rows"),
    [
        ("kmeans", []),
        ("paired", []),
        ("centred", []),
        ("routed", ["router"]),
        ("spilled", ["router", "spill"]),
    ],
)
def test_only_variants_with_a_router_pay_for_one(variant: str, rows: list[str]) -> None:
    named = [cost.stage for cost in costs(small(index={"variant": variant}))]
    assert named[2 : named.index("populate")] == ["train", *rows]


def test_stages_are_those_of_the_diagram_in_its_order() -> None:
    names = "embed pair train populate augment search label select fetch finetune"
    names += " held-out gate evaluation prints leaks zero-shot scores classifier"
    assert [cost.stage for cost in costs(small())] == names.split()
    assert {cost.stage for cost in costs(small(index={"variant": "auto"}))} == {
        *names.split(),
        "router",
        "spill",
    }
