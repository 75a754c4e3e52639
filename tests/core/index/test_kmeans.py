"""Paired k-means against the paper's Algorithm 1 written as loops."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index import kmeans
from tests.core.index.making import Float32, modality_gap, sphere


def nearest(image: Float32, centroids: Float32) -> int:
    return max(range(len(centroids)), key=lambda cell: float(image.astype(np.float64) @ centroids[cell]))


def one_iteration(images: Float32, targets: Float32, centroids: Float32) -> list[list[float]]:
    """Algorithm 1, lines 3 to 6: assign images, average their texts, normalise."""
    assigned = [nearest(image, centroids) for image in images]
    updated = []
    for cell in range(len(centroids)):
        members = [targets[i].astype(np.float64) for i, own in enumerate(assigned) if own == cell]
        assert members, "these tests need a start without empty cells"
        mean = sum(members) / len(members)
        updated.append((mean / np.sqrt((mean**2).sum())).tolist())
    return updated


def start_of(images: Float32, cells: int, seed: int) -> Float32:
    """The initial centroids, as the history of one iteration implies them: rows of the images, seeded."""
    rows = np.sort(np.random.default_rng(seed).choice(len(images), size=cells, replace=False))
    return images[rows]


def test_one_paired_update_equals_the_loops() -> None:
    images, texts = modality_gap(200)
    found = kmeans.cluster(images, texts, cells=6, iterations=1, seed=3)
    assert found.centroids == pytest.approx(
        np.array(one_iteration(images, texts, start_of(images, 6, 3))), abs=1e-6
    )


def test_paired_update_assigns_images_to_text_means_from_the_second_iteration_on() -> None:
    images, texts = sphere(300, 6), sphere(300, 6, seed=1)
    once = kmeans.cluster(images, texts, cells=4, iterations=1, seed=0).centroids
    twice = kmeans.cluster(images, texts, cells=4, iterations=2, seed=0).centroids
    assert twice == pytest.approx(np.array(one_iteration(images, texts, once)), abs=1e-6)


def test_plain_kmeans_when_targets_are_the_images() -> None:
    images, _ = modality_gap(200)
    found = kmeans.cluster(images, images, cells=6, iterations=1, seed=3)
    assert found.centroids == pytest.approx(
        np.array(one_iteration(images, images, start_of(images, 6, 3))), abs=1e-6
    )
    history = kmeans.cluster(images, images, cells=6, iterations=8, seed=3).history
    assert all(step.kmeans == step.cross_modal for step in history)
    assert history[-1].kmeans < history[0].kmeans


def test_objectives_are_eq_3() -> None:
    images, texts = modality_gap(60)
    start = start_of(images, 5, 1)
    (objectives,) = kmeans.cluster(images, texts, cells=5, iterations=1, seed=1).history
    of_images = of_texts = 0.0
    for image, text in zip(images.astype(np.float64), texts.astype(np.float64), strict=True):
        own = start[nearest(image.astype(np.float32), start)].astype(np.float64)
        of_images += float(((image - own) ** 2).sum()) / 60
        of_texts += float(((text - own) ** 2).sum()) / 60
    assert objectives.kmeans == pytest.approx(of_images, rel=1e-5)
    assert objectives.cross_modal == pytest.approx(of_texts, rel=1e-5)
    assert objectives.empty_cells == 0


def test_paired_training_lowers_the_cross_modal_objective_as_figure_shows() -> None:
    images, texts = modality_gap(800)
    paired = kmeans.cluster(images, texts, 16, 10, seed=0).history
    plain = kmeans.cluster(images, images, 16, 10, seed=0).history
    assert len(paired) == 10
    assert paired[-1].cross_modal < paired[0].cross_modal
    assert plain[-1].kmeans < paired[-1].kmeans


def test_f56_empty_cell_takes_half_of_the_largest() -> None:
    """60 copies of one image: copies among the start leave cells without a member."""
    images = sphere(100, 32)
    images[:60] = images[0]
    found = kmeans.cluster(images, images, cells=50, iterations=1, seed=0)
    assert found.history[0].empty_cells > 0
    norms = np.linalg.norm(found.centroids, axis=1)
    assert norms == pytest.approx(np.ones(50), abs=1e-5)
    assert len(np.unique(found.centroids, axis=0)) == 50
    again = kmeans.cluster(images, images, cells=50, iterations=1, seed=0)
    assert again.centroids.tobytes() == found.centroids.tobytes()


def test_f56_twins_share_the_cell_they_came_from() -> None:
    """A centroid that nobody is near, planted by hand: after its split both halves have members."""
    images = sphere(400, 8, seed=1)
    images[:, 0] = np.abs(images[:, 0]) + 1
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    centroids = np.concatenate([images[:2], -images[:1]])
    assigned = kmeans.assign(images, centroids)
    assert (assigned != 2).all()
    largest = int(np.argmax(np.bincount(assigned, minlength=3)))
    before = np.bincount(assigned, minlength=3)
    split = kmeans._update(images, centroids, assigned)
    after = np.bincount(kmeans.assign(images, split), minlength=3)
    assert (after > 0).all()
    assert after[largest] < before[largest]
    assert split[2] @ split[largest] > 0.99


def test_f48_more_cells_than_points() -> None:
    with pytest.raises(DataError, match="6 cells asked for, but only 5"):
        kmeans.cluster(sphere(5, 4), sphere(5, 4), cells=6, iterations=1, seed=0)
    found = kmeans.cluster(sphere(5, 4), sphere(5, 4), cells=5, iterations=3, seed=0)
    assert found.centroids.shape == (5, 4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("side", [0, 1])
def test_f42_not_finite_is_refused(value: float, side: int) -> None:
    pair = sphere(9, 4), sphere(9, 4)
    pair[side][3, 1] = value
    with pytest.raises(DataError, match="NaN or infinite"):
        kmeans.cluster(*pair, cells=2, iterations=1, seed=0)


@pytest.mark.parametrize("texts", [sphere(8, 4), sphere(9, 5)])
def test_misaligned_pairs_are_refused(texts: Float32) -> None:
    with pytest.raises(DataError, match="pairs do not match"):
        kmeans.cluster(sphere(9, 4), texts, cells=2, iterations=1, seed=0)


def test_f55_same_seed_same_bytes() -> None:
    images, texts = modality_gap(500)
    one, two, other = (kmeans.cluster(images, texts, 12, 5, seed=seed) for seed in (7, 7, 8))
    assert one.centroids.tobytes() == two.centroids.tobytes()
    assert one.history == two.history
    assert one.centroids.tobytes() != other.centroids.tobytes()


def test_inputs_are_left_as_they_were() -> None:
    images, texts = modality_gap(100)
    before = images.tobytes(), texts.tobytes()
    kmeans.cluster(images, texts, 40, 3, seed=0)
    assert (images.tobytes(), texts.tobytes()) == before


def test_normalised() -> None:
    vectors = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float16)
    assert kmeans.normalised(vectors).tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, 0.0]]
    assert kmeans.normalised(vectors).dtype == np.float32
