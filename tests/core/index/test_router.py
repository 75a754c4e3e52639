"""The router: a loss written as loops, a small world in which it helps, and when it stops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mudg_core.index import kmeans, router
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.part import Placement
from mudg_core.index.router import Layer, first_cells, fit, held_out
from mudg_core.index.routing import (
    Probing,
    limit,
    rounded_queries,
    rounded_weights,
    routing_scores,
    vectors_read,
)
from tests.core.index.making import Float32, Int64, modality_gap, sphere

CELLS, TRAINING = 24, 2000


@pytest.fixture(scope="module")
def small() -> tuple[Coarse, Float32, Int64, Placement]:
    """Paired centroids, texts with their ten nearest images, and where those images are."""
    images, texts = modality_gap(3000)
    neighbors = np.argsort(-(texts @ images.T), axis=1)[:, :10]
    pairs = images[neighbors[:TRAINING, 0]], texts[:TRAINING]
    centroids = kmeans.cluster(*pairs, cells=CELLS, iterations=6, seed=0).centroids
    coarse = Coarse.unrouted(Centring(np.zeros(24, np.float32), np.zeros(24, np.float32)), centroids)
    return coarse, texts, neighbors, Placement(np.arange(3000), coarse.cells_of(images))


def loss_by_hand(inputs: Float32, homes: Int64, weights: Float32, bias: Float32) -> float:
    total, many = 0.0, 0
    for text, images in zip(inputs, homes, strict=True):
        scores = [math.exp(float(text @ w) + float(b)) for w, b in zip(weights, bias, strict=True)]
        for cells in images:
            there = [scores[cell] for cell in cells if cell >= 0]
            if there:
                total, many = total - math.log(sum(there) / sum(scores)), many + 1
    return total / max(1, many)


def small_layer() -> Layer:
    """With weights and biases that are on the grid."""
    bias = np.random.default_rng(1).normal(size=7)
    return Layer(rounded_weights(3 * sphere(7, 5, seed=1)), rounded_weights(bias))


def some_homes(lost: float, copies: int = 3) -> Int64:
    """An image twice in one cell would count twice: `spill` never does that."""
    random = np.random.default_rng(1)
    homes = np.argsort(random.random((9, 4, 7)), axis=2)[:, :, :copies]
    homes[random.random((9, 4, copies)) < lost] = -1
    return homes


@pytest.mark.parametrize("lost", [0.0, 0.5, 1.0])
def test_loss_of_images_with_several_homes_equals_the_loop(lost: float) -> None:
    layer, inputs, homes = small_layer(), rounded_queries(sphere(9, 5)), some_homes(lost)
    found = router._mean_loss(inputs, homes, layer)
    assert found == pytest.approx(loss_by_hand(inputs, homes, layer.weights, layer.bias), rel=1e-6)


@pytest.mark.parametrize("lost", [0.0, 0.5, 1.0])
def test_gradients_are_those_of_the_loss(lost: float) -> None:
    """By differences of the loss written as loops."""
    layer, inputs, homes = small_layer(), rounded_queries(sphere(9, 5)), some_homes(lost)
    by_weights, by_bias = router._gradients(inputs, homes, layer)

    def loss(cell: int, dim: int | None, change: float) -> float:
        weights, bias = layer.weights.astype(np.float64), layer.bias.astype(np.float64)
        if dim is None:
            bias[cell] += change
        else:
            weights[cell, dim] += change
        return loss_by_hand(inputs.astype(np.float64), homes, weights, bias)

    for cell in range(7):
        slopes = [(loss(cell, dim, 1e-4) - loss(cell, dim, -1e-4)) / 2e-4 for dim in (*range(5), None)]
        assert [*by_weights[cell], by_bias[cell]] == pytest.approx(slopes, abs=1e-6)


def test_the_mean_over_blocks_is_that_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    homes = np.random.default_rng(1).integers(0, 7, (50, 4, 1))
    inputs, layer = rounded_queries(sphere(50, 5)), small_layer()
    whole = router._mean_loss(inputs, homes, layer)
    monkeypatch.setattr(router, "BLOCK", 8)
    assert router._mean_loss(inputs, homes, layer) == whole


def test_weights_and_products_stay_exact() -> None:
    """However long the weights grow, no partial sum of a product needs more bits than float32 has."""
    weights, bias = 1e4 * sphere(30, 512).astype(np.float64), np.linspace(-99, 99, 30)
    limit(weights, bias)
    layer = Layer(rounded_weights(weights), rounded_weights(bias))
    inputs = rounded_queries(sphere(200, 512, seed=1))
    found = routing_scores(inputs, layer.weights, layer.bias)
    exact = inputs.astype(np.float64) @ layer.weights.T.astype(np.float64) + layer.bias
    assert (found == exact).all()
    assert np.linalg.norm(layer.weights, axis=1).max() == pytest.approx(100, abs=0.2)


def test_a_router_finds_neighbours_with_fewer_vectors_than_centroids(
    small: tuple[Coarse, Float32, Int64, Placement],
) -> None:
    coarse, texts, neighbors, placed = small
    fitted = fit(coarse, texts[:TRAINING], placed.homes(neighbors[:TRAINING]), seed=0)
    assert min(fitted.losses) < fitted.losses[0]
    assert fitted.coarse.routed and not coarse.routed
    assert fitted.coarse.centroids is coarse.centroids and fitted.coarse.centring is coarse.centring
    queries, truth = texts[TRAINING:], placed.homes(neighbors[TRAINING:])[..., 0]
    sizes = placed.sizes(CELLS)
    recall, read = {}, {}
    for name, level in (("centroids", coarse), ("router", fitted.coarse)):
        chosen = level.choose(queries, sizes, Probing(3))
        recall[name] = np.mean([np.isin(t, c).mean() for t, c in zip(truth, chosen, strict=True)])
        read[name] = vectors_read(chosen, sizes).mean()
    assert recall["router"] > recall["centroids"] + 0.02, (recall, read)


def test_its_first_loss_is_that_of_the_centroids_and_its_last_that_of_what_it_returns(
    small: tuple[Coarse, Float32, Int64, Placement],
) -> None:
    coarse, texts, neighbors, placed = small
    homes = placed.homes(neighbors[:TRAINING])
    fitted = fit(coarse, texts[:TRAINING], homes, seed=0)
    last = slice(TRAINING - held_out(TRAINING), TRAINING)
    before = loss_by_hand(texts[last], homes[last], router.SCALE * coarse.weights, coarse.bias)
    after = loss_by_hand(texts[last], homes[last], fitted.coarse.weights, fitted.coarse.bias)
    assert fitted.losses[0] == pytest.approx(before, rel=1e-3)
    assert min(fitted.losses) == pytest.approx(after, rel=1e-3)
    again = fit(fitted.coarse, texts[:TRAINING], homes, seed=0)
    assert again.losses[0] == min(fitted.losses), "a trained router goes on from where it is"


def test_held_out_texts_do_not_train(small: tuple[Coarse, Float32, Int64, Placement]) -> None:
    """Their homes, moved elsewhere, only change when to stop; the first epoch is as before."""
    coarse, texts, neighbors, placed = small
    homes = placed.homes(neighbors[:600])
    other = homes.copy()
    other[-held_out(600) :] = (other[-held_out(600) :] + 5) % CELLS
    seen: list[list[float]] = [[], []]
    for note, where in zip(seen, (homes, other), strict=True):
        fit(coarse, texts[:600], where, 0, lambda epoch, loss, note=note: note.append(loss))
    assert seen[0][0] != seen[1][0]
    mine = fit(coarse, texts[:600], homes, 0).coarse.weights
    changed = texts[:600].copy()
    changed[-held_out(600) :] = texts[600 : 600 + held_out(600)]
    moved = placed.homes(np.concatenate([neighbors[: 600 - held_out(600)], neighbors[600:][: held_out(600)]]))
    theirs = fit(coarse, changed, moved, 0).coarse.weights
    assert mine.tobytes() == theirs.tobytes(), "both fall to the end, so both stop at the same epoch"


def test_it_stops_when_held_out_texts_do_not_gain(
    small: tuple[Coarse, Float32, Int64, Placement],
) -> None:
    """Training texts whose images are said to be elsewhere: what they teach, held-out texts lose by."""
    coarse, texts, neighbors, placed = small
    homes = placed.homes(neighbors[:400])
    homes[: 400 - held_out(400)] = (homes[: 400 - held_out(400)] + 5) % CELLS
    epochs: list[int] = []
    fitted = fit(coarse, texts[:400], homes, 0, lambda epoch, loss: epochs.append(epoch))
    assert epochs == [0, 1] and len(fitted.losses) == 3
    assert fitted.losses[0] == min(fitted.losses)
    assert fitted.coarse.weights == pytest.approx(router.SCALE * coarse.weights, abs=2**-7), (
        "nothing was learned"
    )
    assert fitted.coarse.routed


def test_same_seed_same_bytes(small: tuple[Coarse, Float32, Int64, Placement]) -> None:
    coarse, texts, neighbors, placed = small
    before = coarse.weights.tobytes(), coarse.bias.tobytes()
    homes = placed.homes(neighbors[:1200])
    one, two, other = (fit(coarse, texts[:1200], homes, seed) for seed in (3, 3, 4))
    assert one.coarse.weights.tobytes() == two.coarse.weights.tobytes()
    assert one.coarse.bias.tobytes() == two.coarse.bias.tobytes() and one.losses == two.losses
    assert one.coarse.weights.tobytes() != other.coarse.weights.tobytes()
    assert (coarse.weights.tobytes(), coarse.bias.tobytes()) == before


def test_texts_without_any_home(small: tuple[Coarse, Float32, Int64, Placement]) -> None:
    """All of their images were refused: nothing to learn, and no NaN."""
    coarse, texts, neighbors, placed = small
    fitted = fit(coarse, texts[:200], np.full((200, 10, 1), -1), 0)
    assert set(fitted.losses) == {0.0}
    assert np.isfinite(fitted.coarse.weights).all()
    some = placed.homes(neighbors[:200])
    some[::2] = -1
    fitted = fit(coarse, texts[:200], some, 0)
    assert np.isfinite(fitted.losses).all() and np.isfinite(fitted.coarse.weights).all()


def test_the_rate_falls_until_the_last_step(
    small: tuple[Coarse, Float32, Int64, Placement], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before: epochs at rate zero would be paid for in vain."""
    coarse, texts, neighbors, placed = small
    done: list[float] = []
    real = router._cosine
    monkeypatch.setattr(router, "_cosine", lambda at: (done.append(at), real(at))[1])
    monkeypatch.setattr(router, "PATIENCE", 99)
    fit(coarse, texts[:1000], placed.homes(neighbors[:1000]), 0)  # 950 train: a batch and a bit
    assert done == [step / len(done) for step in range(2 * router.EPOCHS)]


@pytest.mark.parametrize(
    ("texts", "expected"), [(1, 1), (2, 1), (19, 1), (40, 2), (1000, 50), (10**6, 20_000)]
)
def test_held_out(texts: int, expected: int) -> None:
    assert held_out(texts) == expected


def test_first_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "BLOCK", 7)
    texts = modality_gap(30)[1]
    none = np.zeros(24, np.float32)
    level = Coarse(Centring(none, none), sphere(5, 24), 6 * sphere(5, 24), np.zeros(5, np.float32), True)
    cells, sure = first_cells(level, texts)
    odds = np.exp(6 * texts @ sphere(5, 24).T)
    assert cells.tolist() == odds.argmax(axis=1).tolist()
    assert sure == pytest.approx(odds.max(axis=1) / odds.sum(axis=1), rel=2e-2)
    assert (cells.dtype, sure.dtype) == (np.int64, np.float32)
    assert first_cells(level, texts[:0])[0].tolist() == []
