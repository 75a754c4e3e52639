"""Paired k-means against Algorithm 1 of the paper written as loops; the same bytes however it is spread."""

from __future__ import annotations

from collections.abc import Sequence

import faiss
import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index import kmeans
from mudg_core.index.kmeans import Clustering, LocalPool, PairShard
from mudg_core.index.nearest_cell import assign
from tests.core.index.making import Float32, modality_gap, sphere


def nearest(vector: Float32, centroids: Float32) -> int:
    return max(range(len(centroids)), key=lambda cell: float(vector.astype(np.float64) @ centroids[cell]))


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
    """The initial centroids: rows of the images, seeded."""
    return images[np.sort(np.random.default_rng(seed).choice(len(images), size=cells, replace=False))]


def cut(images: Float32, texts: Float32, firsts: Sequence[int]) -> list[PairShard]:
    """Shards that begin at `firsts`, in memory of their own."""
    ends = [*firsts[1:], len(images)]
    targets = kmeans.single_on_grid(texts)
    return [
        PairShard(images[a:b].copy(), targets[a:b].copy()) for a, b in zip(firsts, ends, strict=True) if b > a
    ]


def run(shards: Sequence[PairShard], start: Float32, iterations: int = 4) -> tuple[bytes, object]:
    found = kmeans.train(LocalPool(shards), Clustering(start, ()), iterations)
    return found.centroids.tobytes(), found.history


def test_one_paired_update_equals_the_loops() -> None:
    images, texts = modality_gap(200)
    found = kmeans.cluster(images, texts, cells=6, iterations=1, seed=3)
    assert found.centroids == pytest.approx(
        np.array(one_iteration(images, texts, start_of(images, 6, 3))), abs=1e-6
    )


def test_images_are_assigned_to_text_means_from_the_second_iteration_on() -> None:
    images, texts = sphere(300, 6), sphere(300, 6, seed=1)
    once = kmeans.cluster(images, texts, cells=4, iterations=1, seed=0).centroids
    twice = kmeans.cluster(images, texts, cells=4, iterations=2, seed=0).centroids
    assert twice == pytest.approx(np.array(one_iteration(images, texts, once)), abs=1e-6)


def test_plain_kmeans_when_targets_are_the_images() -> None:
    """The objectives are measured on every 16th pair, so 16 copies of an image make them exact."""
    images = np.repeat(modality_gap(200)[0], 16, axis=0)
    found = kmeans.cluster(images, images, cells=6, iterations=1, seed=3)
    assert found.centroids == pytest.approx(
        np.array(one_iteration(images, images, start_of(images, 6, 3))), abs=1e-6
    )
    history = kmeans.cluster(images, images, cells=6, iterations=8, seed=3).history
    assert all(step.cross_modal == 0 for step in history), "a text that is its image lies in its cell"
    falling = [step.kmeans for step in history]
    assert falling == sorted(falling, reverse=True) and falling[-1] < falling[0]


def eq_3(images: Float32, pairs: tuple[Float32, Float32], centroids: Float32) -> tuple[float, float]:
    """By loops: mean squared distance of every 16th image, and every 16th text that lies in another cell than
    its image."""
    some = images[::16].astype(np.float64)
    distances = [float(((image - centroids[nearest(image, centroids)]) ** 2).sum()) for image in some]
    wrong = [nearest(a, centroids) != nearest(b, centroids) for a, b in zip(*pairs, strict=True)][::16]
    return sum(distances) / len(distances), sum(wrong) / len(wrong)


@pytest.mark.parametrize("iterations", [1, 3])
def test_objectives_are_eq_3(monkeypatch: pytest.MonkeyPatch, iterations: int) -> None:
    """Entry i is of the centroids after i updates, the last one of those that are returned."""
    monkeypatch.setattr(kmeans, "TILE", 64)  # 400 pairs: six tiles and a rest
    images, texts = modality_gap(400)
    after = [kmeans.cluster(images, texts, 5, i, seed=1).centroids for i in range(1, iterations + 1)]
    history = kmeans.cluster(images, texts, 5, iterations, seed=1).history
    for objectives, centroids in zip(history, [start_of(images, 5, 1), *after], strict=True):
        distance, wrong = eq_3(images, (images, texts), centroids)
        assert 0 < wrong < 1
        assert objectives.kmeans == pytest.approx(distance, rel=1e-6)
        assert objectives.cross_modal == wrong
    assert [step.empty_cells for step in history] == [0] * iterations + [None]


def test_plain_kmeans_is_measured_on_texts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmeans, "TILE", 64)
    gallery, pairs = modality_gap(400, seed=5)[0], modality_gap(300)
    sample = (pairs[0][::16], pairs[1][::16])
    start = Clustering(start_of(gallery, 5, 1), ())
    found = kmeans.train(LocalPool([PairShard(gallery, gallery, sample)]), start, 2)
    bare = kmeans.train(LocalPool([PairShard(gallery, gallery)]), start, 2)
    assert found.centroids.tobytes() == bare.centroids.tobytes(), "measuring changes no centroid"
    for step, centroids in ((0, start.centroids), (2, found.centroids)):
        distance, wrong = eq_3(gallery, pairs, centroids)
        assert 0 < wrong < 1
        assert found.history[step].kmeans == pytest.approx(distance, rel=1e-6)
        assert found.history[step].cross_modal == wrong


def test_paired_training_lowers_the_cross_modal_objective_and_plain_the_other() -> None:
    images, texts = modality_gap(1600)
    paired = kmeans.cluster(images, texts, 16, 10, seed=0).history
    plain = kmeans.cluster(images, images, 16, 10, seed=0).history
    assert len(paired) == 11
    assert paired[-1].cross_modal < paired[0].cross_modal
    assert plain[-1].kmeans < paired[-1].kmeans


def test_f56_empty_cell_takes_half_of_the_largest() -> None:
    """60 copies of one image: copies among the start leave cells without a member."""
    images = sphere(100, 32)
    images[:60] = images[0]
    found = kmeans.cluster(images, images, cells=50, iterations=1, seed=0)
    assert found.history[0].empty_cells > 0
    assert np.linalg.norm(found.centroids, axis=1) == pytest.approx(np.ones(50), abs=1e-5)
    assert len(np.unique(found.centroids, axis=0)) == 50
    again = kmeans.cluster(images, images, cells=50, iterations=1, seed=0)
    assert again.centroids.tobytes() == found.centroids.tobytes()


def test_f56_twins_share_the_cell_they_came_from() -> None:
    """A centroid that nobody is near, planted by hand: after its split both halves have members."""
    images = sphere(400, 8, seed=1)
    images[:, 0] = np.abs(images[:, 0]) + 1
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    centroids = np.concatenate([images[:2], -images[:1]])
    found = kmeans.partial(PairShard(images, kmeans.single_on_grid(images)), centroids)
    assert found.counts[2] == 0 and kmeans.objectives(found).empty_cells == 1
    largest = int(np.argmax(found.counts))
    split = kmeans.update(centroids, found)
    after = np.bincount(assign(images, split), minlength=3)
    assert (after > 0).all()
    assert after[largest] < found.counts[largest]
    assert split[2] @ split[largest] > 0.99


def test_f48_more_cells_than_points() -> None:
    with pytest.raises(DataError, match="cells is 6, but there are only 5") as caught:
        kmeans.cluster(sphere(5, 4), sphere(5, 4), cells=6, iterations=1, seed=0)
    assert caught.value.where == "index.cells"
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


@pytest.mark.parametrize("seed", range(6))
def test_any_cut_at_tiles_in_any_order_gives_the_same_bytes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kmeans, "TILE", 32)
    images, texts = modality_gap(1000, seed)
    start = start_of(images, 24, seed)
    whole = run(cut(images, texts, [0]), start)
    random = np.random.default_rng(seed)
    for parts in (2, 4, 9, 32):
        firsts = np.sort(random.choice(np.arange(32, 1000, 32), size=parts - 1, replace=False)).tolist()
        shards = cut(images, texts, [0, *firsts])
        assert len(shards) == parts
        assert run([shards[i] for i in random.permutation(parts)], start) == whole


def test_real_tiles_cut_in_any_way_and_threads_give_the_same_bytes() -> None:
    images, texts = sphere(20_000, 16), sphere(20_000, 16, seed=1)
    start, tile = start_of(images, 64, 0), kmeans.TILE
    assert len(images) > 2 * tile, "three tiles"
    whole = run(cut(images, texts, [0]), start, 3)
    for firsts in ([0, tile], [0, 2 * tile], [0, tile, 2 * tile]):
        assert run(cut(images, texts, firsts)[::-1], start, 3) == whole
    faiss.omp_set_num_threads(2)
    try:
        assert run(cut(images, texts, [0, tile]), start, 3) == whole
    finally:
        faiss.omp_set_num_threads(1)


def test_sums_are_exact_in_any_order() -> None:
    vectors = sphere(4000, 7)
    grid = kmeans.single_on_grid(vectors)
    assert np.abs(grid - vectors).max() <= 2.0**-27
    assert (np.rint(grid * 2.0**26) == grid * 2.0**26).all()
    exact = [sum(int(value) for value in column) for column in (grid.astype(np.float64) * 2.0**26).T]
    for order in (np.arange(4000), np.arange(4000)[::-1], np.random.default_rng(0).permutation(4000)):
        total = np.add.reduce(grid[order], axis=0, dtype=np.float64)
        assert (total * 2.0**26).tolist() == exact


def test_partials_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmeans, "TILE", 100)
    images, texts = modality_gap(300)
    shards = [*cut(images, texts, [0, 100]), *cut(images, texts, [0])]
    a, b, whole = (kmeans.partial(shard, images[:7]) for shard in shards)
    found = b + a
    assert found.sums.tobytes() == whole.sums.tobytes()
    assert found.counts.tolist() == whole.counts.tolist()
    assert found.distance == whole.distance


def test_a_checkpoint_goes_on_as_if_nothing_had_happened() -> None:
    images, texts = modality_gap(500)
    pool, start = LocalPool(cut(images, texts, [0])), Clustering(start_of(images, 12, 0), ())
    seen: list[Clustering] = []
    whole = kmeans.train(pool, start, 6, seen.append)
    assert [len(state.history) for state in seen] == [1, 2, 3, 4, 5, 6]
    for state in seen:
        resumed = kmeans.train(pool, state, 6)
        assert resumed.centroids.tobytes() == whole.centroids.tobytes()
        assert resumed.history == whole.history
    assert kmeans.train(pool, whole, 6) is whole, "done already"


def test_inputs_are_left_as_they_were() -> None:
    images, texts = modality_gap(100)
    before = images.tobytes(), texts.tobytes()
    kmeans.cluster(images, texts, 40, 3, seed=0)
    assert (images.tobytes(), texts.tobytes()) == before


def test_history_as_facts() -> None:
    images, texts = modality_gap(64)
    history = kmeans.cluster(images, texts, 4, 2, seed=0).history
    facts = kmeans.as_facts(history)
    assert [kmeans.Objectives(**step) for step in facts] == list(history)
