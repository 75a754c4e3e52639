"""k-means of one label's images against its definition, and what copies do to it."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.dataset.cluster_selection import cluster_images
from tests.core.index.making import Float32, Int64, sphere, unit


def made(features: Float32, count: int, seed: int = 0) -> Int64:
    return cluster_images(features, count, np.random.default_rng(seed))


def inertia(features: Float32, own: Int64) -> float:
    parts = [features[own == number].astype(np.float64) for number in np.unique(own)]
    return float(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))


@pytest.mark.parametrize("seed", range(20))
def test_a_fixed_point_of_lloyd(seed: int) -> None:
    """Every image is nearest to the mean of its own cluster, and no cluster is empty."""
    random = np.random.default_rng(seed)
    features, count = sphere(int(random.integers(40, 200)), 16, seed), int(random.integers(2, 20))
    own = made(features, count, seed)
    assert sorted(set(own.tolist())) == list(range(count))
    means = np.stack([features[own == number].mean(axis=0) for number in range(count)])
    distance = np.linalg.norm(features[:, None] - means[None], axis=2)
    assert (distance[np.arange(len(own)), own] <= distance.min(axis=1) + 1e-5).all()


def test_weights_are_copies() -> None:
    """The mean of a cluster counts every copy: with ten of them it lies at the copied image."""
    for seed in range(20):
        features = sphere(30, 8, seed)
        features = np.concatenate([features, np.repeat(features[:3], 9, axis=0)])
        own = made(features, 6, seed)
        means = np.stack([features[own == number].mean(axis=0) for number in range(6)])
        distance = np.linalg.norm(features[:, None] - means[None], axis=2)
        assert (distance[np.arange(len(own)), own] <= distance.min(axis=1) + 1e-5).all()


def test_as_good_as_another_implementation() -> None:
    from sklearn.cluster import KMeans

    random = np.random.default_rng(0)
    topics = random.normal(size=(20, 32))
    features = unit(topics[random.integers(0, 20, 400)] + 0.8 * random.normal(size=(400, 32)))
    ours = np.mean([inertia(features, made(features, 24, seed)) for seed in range(10)])
    theirs = np.mean(
        [inertia(features, KMeans(24, n_init=1, random_state=s).fit_predict(features)) for s in range(10)]
    )
    assert ours < 1.03 * theirs


def test_copies_share_a_cluster() -> None:
    for seed in range(30):
        random = np.random.default_rng(seed)
        different = int(random.integers(2, 30))
        image = np.concatenate([np.arange(different), random.integers(0, different, 60)])
        features, count = sphere(different, 8, seed)[image], int(random.integers(1, 35))
        own = made(features, count, seed)
        assert len(set(zip(image.tolist(), own.tolist(), strict=True))) == different
        assert sorted(set(own.tolist())) == list(range(min(count, different)))


def test_images_that_differ_by_less_than_a_product_can_tell() -> None:
    features = np.repeat(sphere(1, 8), 20, axis=0)
    features[:, 0] += np.arange(20) * np.float32(2e-8) + np.float32(1e-7)
    features = np.unique(features, axis=0)
    own = made(features, len(features) - 1)
    assert len(set(own.tolist())) == len(features) - 1


def test_near_copies_do_not_take_many_clusters() -> None:
    """Half of the images are one scene, scarcely changed; a random start would give it half the clusters."""
    random = np.random.default_rng(0)
    scene = sphere(1, 32) + 1e-3 * random.normal(size=(100, 32))
    features = unit(np.concatenate([scene, sphere(100, 32, seed=1)]))
    for seed in range(10):
        assert len(set(made(features, 20, seed)[:100].tolist())) == 1


def test_lengths_do_not_matter() -> None:
    features = sphere(60, 8)
    longer = features * np.float32(4)
    assert (made(features, 7) == made(longer, 7)).all()
