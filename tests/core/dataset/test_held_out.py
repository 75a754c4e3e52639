"""Images that a student is judged by: none that it was trained on, nor copies of those."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mudg_core.dataset.fetch_filter_refill import CHOSEN, SPARE
from mudg_core.dataset.held_out import SPARES, plan_held_out
from mudg_core.index.vectors import Float32, Int64, normalised

ROWS, LABELS = 240, 4
OUTCOMES = (CHOSEN, "dead link", SPARE, SPARE, SPARE, SPARE)


def features(seed: int = 0) -> Float32:
    return normalised(np.random.default_rng(seed).normal(size=(ROWS, 16)).astype(np.float32))


def provenance() -> pa.Table:
    rows = np.arange(ROWS)
    return pa.table(
        {
            "row": rows,
            "label": rows % LABELS,
            "query": rows % LABELS,
            "rank": rows + 1,
            "cosine": np.linspace(0.9, 0.3, ROWS).astype(np.float32),
            "group": rows,
            "quota": np.ones(ROWS, np.int64),
            "turn": np.zeros(ROWS, np.int64),
            "outcome": [OUTCOMES[row // LABELS % len(OUTCOMES)] for row in rows],
        }
    )


def images(hashes: Int64) -> pa.Table:
    files = [f"{row:064d}" for row in range(ROWS)]
    return pa.table({"row": np.arange(ROWS), "sha256": files, "phash": hashes})


def spread_hashes(seed: int = 1) -> Int64:
    return np.random.default_rng(seed).integers(-(2**62), 2**62, ROWS)


def planned(vectors: Float32, hashes: Int64, per_class: int = 5, seed: int = 0) -> pa.Table:
    return plan_held_out(provenance(), images(hashes), lambda rows: vectors[rows], per_class, seed)


def test_only_spare_images_are_asked_for_and_as_many_of_each_class() -> None:
    plan = planned(features(), spread_hashes())
    outcomes = np.array(provenance().column("outcome").to_pylist())
    assert set(outcomes[plan.column("row").to_numpy()]) == {SPARE}
    assert set(plan.column("quota").to_pylist()) == {5}
    assert np.bincount(plan.column("label").to_numpy()).tolist() == [5 * SPARES] * LABELS
    assert (plan.column("label").to_numpy() == plan.column("row").to_numpy() % LABELS).all()


def test_near_copies_of_training_images_are_left_out() -> None:
    vectors, hashes = features(), spread_hashes()
    outcomes = np.array(provenance().column("outcome").to_pylist())
    chosen, spare = (np.flatnonzero(outcomes == kind) for kind in (CHOSEN, SPARE))
    copies, shots = spare[:20], spare[20:40]
    vectors[copies] = vectors[chosen[:20]]
    hashes[copies] = hashes[chosen[:20]] ^ 1
    vectors[shots] = vectors[chosen[:20]]  # alike to the model, but not to the eye
    kept = set(planned(vectors, hashes, per_class=50).column("row").to_pylist())
    assert not kept & set(copies.tolist())
    assert set(shots.tolist()) <= kept


def test_the_seed_decides_and_nothing_else() -> None:
    vectors, hashes = features(), spread_hashes()
    one, again, other = (planned(vectors, hashes, seed=seed).column("row") for seed in (0, 0, 1))
    assert one == again != other


def test_no_spare_image_is_an_empty_plan() -> None:
    all_chosen = provenance().drop_columns(["outcome"]).append_column("outcome", pa.array([CHOSEN] * ROWS))
    vectors = features()
    plan = plan_held_out(all_chosen, images(spread_hashes()), lambda rows: vectors[rows], 5, 0)
    assert plan.num_rows == 0 and {"group", "quota", "turn"} <= set(plan.column_names)
