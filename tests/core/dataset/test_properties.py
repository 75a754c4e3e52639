"""What must hold of a training set whatever the target: Algorithm 2, steps 1 to 3, end to end on vectors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mudg_core.dataset.candidates import flatten
from mudg_core.dataset.cluster_selection import plan_selection
from mudg_core.dataset.pseudo_labels import pseudo_label
from mudg_core.dataset.selection_rules import Rule
from mudg_core.index.ivf import Hits
from mudg_core.settings import AugmentSettings
from mudg_core.target.prompts import augmentations
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from tests.core.index.making import Float32, sphere

IMAGES, DIM, M, N, K1 = 400, 12, 3, 20, 6


def built(classes: list[int], seed: int = 0, augmented: int = M) -> tuple[pa.Table, pa.Table]:
    """Labelled images and their plan; class i stands for its own queries, whatever its place in the list."""
    gallery = sphere(IMAGES, DIM, seed=1)
    queries = np.concatenate([sphere(augmented, DIM, seed=100 + one) for one in classes])
    cosines = queries @ gallery.T
    rows = np.argsort(-cosines, axis=1, kind="stable")[:, :N]
    hits = Hits(rows, np.take_along_axis(cosines, rows, axis=1).astype(np.float32))
    labelled = pseudo_label(flatten(hits, np.repeat(np.arange(len(classes)), augmented)), "rank", N, seed)

    def features(wanted: np.ndarray) -> Float32:  # type: ignore[type-arg]
        return np.asarray(gallery[wanted], np.float32)

    return labelled, plan_selection(labelled, features, Rule("cluster", K1, seed))


def chosen(classes: list[int], plan: pa.Table) -> dict[int, set[int]]:
    """Who is taken first of every group, by class."""
    lines = [line for line in plan.to_pylist() if line["turn"] < line["quota"]]
    return {
        one: {line["row"] for line in lines if line["label"] == place} for place, one in enumerate(classes)
    }


@pytest.mark.parametrize("count", [2, 5, 9])
def test_never_more_than_m_c_n_candidates_nor_more_than_k1_a_label(count: int) -> None:
    classes = list(range(count))
    labelled, plan = built(classes)
    rows = labelled.column("row").to_pylist()
    assert len(set(rows)) == len(rows) <= M * count * N
    assert all(0 < len(taken) <= K1 for taken in chosen(classes, plan).values())


@pytest.mark.parametrize("seed", range(6))
def test_permuting_the_classes_permutes_the_result_and_nothing_else(seed: int) -> None:
    classes = list(range(7))
    shuffled = np.random.default_rng(seed).permutation(7).tolist()
    assert chosen(classes, built(classes)[1]) == chosen(shuffled, built(shuffled)[1])


def test_same_seed_same_plan() -> None:
    assert built([0, 1, 2], seed=3)[1].equals(built([0, 1, 2], seed=3)[1])
    assert not built([0, 1, 2], seed=3)[1].equals(built([0, 1, 2], seed=4)[1])


def test_without_augmentation_another_class_changes_no_query() -> None:
    settings = AugmentSettings(method="none")
    asked = {}
    for names in (("cat", "dog"), ("cat", "dog", "fox"), ("fox", "dog", "cat")):
        target = Target(name="t", classes=names)
        queries = Queries.of(target, augmentations(target, settings, lambda texts: sphere(len(texts), 2)))
        asked[names] = {names[label]: text for text, label in zip(queries.texts, queries.labels, strict=True)}
    plain = asked["cat", "dog"]
    assert all({name: said[name] for name in plain} == plain for said in asked.values())
