"""The coarse level: which cell an image lies in, and which cells a query reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from mudg_core.errors import DataError
from mudg_core.index import coarse, nearest_cell, vectors
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.exact import exact_cosines
from mudg_core.index.routing import Probing, choose, probabilities, ranked, vectors_read
from tests.core.index.making import Float32, Int64, modality_gap, sphere, unit


def nothing(dim: int) -> Centring:
    return Centring(np.zeros(dim, np.float32), np.zeros(dim, np.float32))


def made(cells: int = 6, dim: int = 24, routed: bool = False) -> Coarse:
    images, texts = modality_gap(300)
    centring = Centring(images.mean(axis=0), texts.mean(axis=0))
    weights, bias = 5 * sphere(cells, dim, seed=2), np.linspace(-1, 1, cells, dtype=np.float32)
    return Coarse(centring, sphere(cells, dim, seed=1), weights, bias, routed)


def by_hand(scores: list[float], sizes: list[int], probes: int, mass: float, gain: float) -> list[int]:
    worth = [s - gain * np.log1p(size) for s, size in zip(scores, sizes, strict=True)]
    order = sorted(range(len(scores)), key=lambda cell: -worth[cell])[:probes]
    total, taken, read = sum(np.exp(scores)), 0.0, []
    for cell in order:
        if read and taken >= mass:
            break
        read.append(cell)
        taken += np.exp(scores[cell]) / total
    return read + [-1] * (len(order) - len(read))


@pytest.mark.parametrize("tile", [7, 8192])
def test_an_image_lies_in_the_cell_of_its_nearest_centroid(
    tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest_cell, "ROWS", tile)
    images, level = modality_gap(50)[0], made()
    centred = unit(images - level.centring.image)
    assert level.cells_of(images).tolist() == [int(np.argmax(level.centroids @ v)) for v in centred]
    assert not np.allclose(centred, images)
    assert level.cells_of(images[:0]).tolist() == []


def test_scores_of_centred_queries() -> None:
    texts, level = modality_gap(20)[1], made()
    for text, found in zip(texts, level.scores(texts), strict=True):
        shifted = text - level.centring.text
        shifted = shifted / np.sqrt((shifted**2).sum())
        assert found == pytest.approx(level.weights @ shifted + level.bias, abs=1e-5)


def test_unrouted_queries_go_to_the_nearest_centroids_whatever_gain_and_mass_say() -> None:
    texts, level = modality_gap(20)[1], Coarse.unrouted(nothing(24), sphere(6, 24))
    sizes = np.array([1, 1000, 3, 400, 5, 60])
    found = level.choose(texts, sizes, Probing(4, mass=0.01, gain=2.0))
    assert found.tolist() == [np.argsort(-(level.centroids @ text))[:4].tolist() for text in texts]
    assert not level.routed and (level.cells, level.dim) == (6, 24)


def copies(cells: int, dim: int, equal: int) -> Float32:
    """Centroids of which the last are one and the same, and some a last bit away from others."""
    centroids = sphere(cells, dim, seed=4)
    centroids[cells - equal :] = centroids[3]
    centroids[10:20] = np.nextafter(centroids[:10], np.float32(1))
    return centroids


@pytest.mark.parametrize("equal", [0, 5, 150])
@pytest.mark.parametrize("probes", [3, 40, 100, 199, 200])
@pytest.mark.parametrize("ordered", [20, 1000])
@pytest.mark.parametrize("block", [1, 90_000, 1 << 27])
def test_the_nearest_cells_are_those_of_exact_cosines(
    equal: int, probes: int, ordered: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "BLOCK_BYTES", block)
    monkeypatch.setattr(coarse, "ORDERED", ordered)
    level = Coarse.unrouted(nothing(64), copies(200, 64, equal))
    texts = np.concatenate([sphere(30, 64, seed=5), level.centroids[3:4], -level.centroids[3:4]])
    found = level.choose(texts, np.ones(200, np.int64), Probing(probes))
    exact = np.argsort(-exact_cosines(texts, level.centroids), axis=1, kind="stable")[:, :probes]
    assert found.tolist() == (np.sort(exact, axis=1) if probes > ordered else exact).tolist()


def test_many_probes_are_settled_without_scoring_every_cell_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with 16,384 cells of 768 dimensions: a dozen cells are as near as the last one, give or take."""
    monkeypatch.setattr(coarse, "float32_error", lambda dim: 3e-4)
    monkeypatch.setattr(Coarse, "_cosines", lambda *_: pytest.fail("every cell was scored exactly"))
    level, texts = Coarse.unrouted(nothing(64), sphere(2000, 64, seed=4)), sphere(50, 64, seed=5)
    found = level.choose(texts, np.ones(2000, np.int64), Probing(400))
    exact = np.argsort(-exact_cosines(texts, level.centroids), axis=1, kind="stable")[:, :400]
    assert found.tolist() == np.sort(exact, axis=1).tolist()


@pytest.mark.parametrize("count", [1, 2, 7, 29, 30])
def test_ranked_is_a_stable_sort(count: int) -> None:
    worth = np.random.default_rng(0).integers(0, 6, (80, 30)).astype(np.float32)
    worth[:3] = 0
    assert ranked(worth, count).tolist() == np.argsort(-worth, axis=1, kind="stable")[:, :count].tolist()


@pytest.mark.parametrize("mass", [0.25, 0.5, 0.75])
def test_a_mass_that_is_just_reached(mass: float) -> None:
    """Four equal cells: a quick probability may be a bit beside a quarter, a slow one is not."""
    scores = np.tile(np.float32([3, 3, 3, 3, -90]), (5, 1))
    found = choose(scores, np.ones(5, np.int64), Probing(5, mass))
    assert (found >= 0).sum(axis=1).tolist() == [4 * mass] * 5


def test_blocks_of_queries_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, level, sizes = modality_gap(40)[1], made(routed=True), np.array([1, 1000, 3, 400, 5, 60])
    probing = Probing(5, 0.8, 1.0)
    whole = level.choose(texts, sizes, probing)
    monkeypatch.setattr(vectors, "BLOCK_BYTES", 1000)
    assert level.choose(texts, sizes, probing).tolist() == whole.tolist()
    assert level.choose(texts[:0], sizes, probing).shape == (0, 5)


def test_weights_of_an_older_version_score_exactly_too() -> None:
    """However long they are; and what is saved stays as it is."""
    weights, bias = 1e4 * sphere(30, 512), np.linspace(-99, 99, 30, dtype=np.float32)
    level = Coarse(nothing(512), sphere(30, 512), weights.copy(), bias.copy(), routed=True)
    texts, order = sphere(50, 512, seed=1), np.random.default_rng(0).permutation(512)
    turned = Coarse(nothing(512), sphere(30, 512), weights[:, order], bias.copy(), routed=True)
    assert (level.scores(texts) == turned.scores(np.ascontiguousarray(texts[:, order]))).all()
    assert np.abs(level.scores(texts)).max() < 121 and (level.weights == weights).all()
    assert (level.bias == bias).all()


def test_routed_queries_heed_gain_and_mass() -> None:
    texts, level = modality_gap(20)[1], made(routed=True)
    sizes = np.array([1, 1000, 3, 400, 5, 60])
    found = level.choose(texts, sizes, Probing(5, mass=0.8, gain=1.0))
    scores = level.scores(texts)
    assert found.tolist() == [by_hand(s.tolist(), sizes.tolist(), 5, 0.8, 1.0) for s in scores]
    assert (found < 0).any() and found.tolist() != level.choose(texts, sizes, Probing(5)).tolist()


@pytest.mark.parametrize("gain", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("mass", [1e-9, 0.3, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("probes", [1, 4, 9, 100])
def test_choose_equals_the_loop(gain: float, mass: float, probes: int) -> None:
    random = np.random.default_rng(3)
    scores, sizes = 2 * random.normal(size=(30, 9)).astype(np.float32), random.integers(0, 500, 9)
    found = choose(scores, sizes, Probing(probes, mass, gain))
    expected = [by_hand(line, sizes.tolist(), min(probes, 9), mass, gain) for line in scores.tolist()]
    assert found.tolist() == expected
    assert (found[:, 0] >= 0).all(), "the first cell is always read"


def test_the_first_cell_is_read_even_if_it_is_sure() -> None:
    scores = np.array([[0.0, 90.0, 0.0]], np.float32)
    assert choose(scores, np.ones(3, np.int64), Probing(3, mass=0.5)).tolist() == [[1, -1, -1]]


def test_probabilities() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    assert probabilities(scores) == pytest.approx(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True))


def test_vectors_read() -> None:
    cells, sizes = np.array([[0, 2], [1, -1], [-1, -1]]), np.array([5, 7, 11])
    assert vectors_read(cells, sizes).tolist() == [16, 7, 0]


@pytest.mark.parametrize("routed", [False, True])
def test_round_trip(routed: bool, tmp_path: Path) -> None:
    level, file = made(routed=routed), tmp_path / "coarse.safetensors"
    level.save(file)
    found = Coarse.load(file)
    assert found.routed is routed
    for name in ("centroids", "weights", "bias"):
        assert getattr(found, name).tobytes() == getattr(level, name).tobytes()
    assert found.centring.image.tobytes() == level.centring.image.tobytes()
    assert found.centring.text.tobytes() == level.centring.text.tobytes()
    again = tmp_path / "again.safetensors"
    found.save(again)
    assert again.read_bytes() == file.read_bytes()


def test_f50_f73_not_a_coarse_level(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    made().save(whole)
    data = whole.read_bytes()
    bad = [b"", b"garbage" * 99, data[:5], data[:200], data[:-1], b"\xff" * 8 + data[8:]]
    for number, content in enumerate(bad):
        file = tmp_path / f"{number}.safetensors"
        file.write_bytes(content)
        with pytest.raises(DataError, match="not readable as the coarse level") as caught:
            Coarse.load(file)
        assert caught.value.where == str(file) and "index build" in caught.value.fix
    save_file({"centroids": sphere(2, 3)}, tmp_path / "other")
    for name in ("other", "none"):
        with pytest.raises(DataError, match="not readable as the coarse level"):
            Coarse.load(tmp_path / name)


@pytest.mark.parametrize("queries", [sphere(3, 23), sphere(3, 24)[0], sphere(3, 25)])
def test_f44_queries_of_another_dimension(queries: Float32) -> None:
    sizes: Int64 = np.ones(6, np.int64)
    with pytest.raises(DataError, match="against an index of dimension 24") as caught:
        made().choose(queries, sizes, Probing(1))
    assert "model" in caught.value.fix


def test_images_as_queries_go_where_images_are_put() -> None:
    images, texts = modality_gap(200)
    centring = Centring(images.mean(axis=0), texts.mean(axis=0))
    routed = Coarse(centring, images[:9], texts[:9], np.ones(9, np.float32), routed=True)
    first = routed.for_images().choose(images, np.ones(9, np.int64), Probing(1, 0.5, 2.0))[:, 0]
    assert first.tolist() == routed.cells_of(images).tolist()
    assert first.tolist() != routed.choose(images, np.ones(9, np.int64), Probing(1))[:, 0].tolist()
