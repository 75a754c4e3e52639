"""Adaptive label augmentation against Eq. 4 written as loops, with a text tower that is a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest

from mudg_core.index.exact import on_grid
from mudg_core.target import descriptor_selection
from mudg_core.target.descriptor_selection import (
    Clusters,
    Encoder,
    Ranking,
    Scored,
    cluster_labels,
    random_choice,
    score,
)
from mudg_core.target.spec import Target
from tests.core.index.making import Float32, unit

POOL = [f"which is {word}" for word in ["red", "green", "blue", "old", "new", "wet", "dry", "big"]]


def target(count: int) -> Target:
    return Target(name="t", classes=tuple(f"thing {number}" for number in range(count)))


def vector(text: str, dim: int) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=dim).tolist()


def hashed(dim: int = 6, own: float = 0.6) -> Encoder:
    """A prompt's vector: its class's, moved by the whole text."""

    def encode(texts: Sequence[str]) -> Float32:
        rows = [
            np.add(vector(text.split(",")[0].strip("."), dim), np.multiply(own, vector(text, dim)))
            for text in texts
        ]
        return unit(np.array(rows))

    return encode


def naive(
    prompts: list[str], augmented: list[str], clusters: Sequence[int], encode: Encoder
) -> tuple[int, float]:
    """Loss and rise of one descriptor, by a double loop over the pairs of each cluster."""

    def mean_cosine(texts: list[str], members: list[int]) -> float:
        features = encode(texts).astype(np.float64)
        total = 0.0
        for i in members:
            for j in members:
                total += float(features[i] @ features[j])
        return total / len(members) ** 2

    loss, rise = 0, 0.0
    for number in set(clusters):
        members = [label for label, own in enumerate(clusters) if own == number]
        if len(members) < 2:
            continue
        change = mean_cosine(augmented, members) - mean_cosine(prompts, members)
        loss += change > 0
        rise += change
    return loss, rise


@pytest.mark.parametrize(("classes", "label_clusters"), [(2, 16), (5, 16), (12, 4), (40, 16), (30, 1)])
def test_loss_equals_eq_4(classes: int, label_clusters: int) -> None:
    spec, encode = target(classes), hashed()
    ranking = score(spec, POOL, encode, label_clusters=label_clusters, seed=0)
    scored, clusters = ranking.scored, ranking.assigned
    assert len(clusters) == classes
    assert len(set(clusters.tolist())) <= max(1, min(label_clusters, classes // 3))
    expected = {}
    for descriptor in POOL:
        augmented = [spec.prompt(label, descriptor) for label in range(classes)]
        expected[descriptor] = naive(spec.prompts(), augmented, clusters.tolist(), encode)
    for item in scored:
        assert item.loss == expected[item.descriptor][0] == len(item.collapsed)
        assert item.rise == pytest.approx(expected[item.descriptor][1], abs=1e-5)
    order = sorted(POOL, key=lambda d: (expected[d][0], round(expected[d][1], 9), POOL.index(d)))
    assert [item.descriptor for item in scored] == order


def test_losses_differ_in_the_case_above() -> None:
    scored = score(target(40), POOL, hashed(), label_clusters=16, seed=0).scored
    assert len({item.loss for item in scored}) > 1


def test_exact_ties_keep_the_order_of_the_pool() -> None:
    def encode(texts: Sequence[str]) -> Float32:
        return hashed()([text.split(",")[0].strip(".") + "." for text in texts])

    pool = ["which is z", "which is a", "which is m"]
    scored = score(target(9), pool, encode, label_clusters=3, seed=0).scored
    assert [(item.descriptor, item.loss, item.rise) for item in scored] == [(d, 0, 0.0) for d in pool]


def test_ties_of_the_loss_go_to_the_smaller_rise() -> None:
    """Both pull every cluster together; the first does so more."""
    strength = {"which is strong": 3.0, "which is weak": 1.0}

    def encode(texts: Sequence[str]) -> Float32:
        plain = hashed(own=0.0)([text.split(",")[0].strip(".") for text in texts])
        pull = [next((s for d, s in strength.items() if d in text), 0.0) for text in texts]
        return unit(plain + np.outer(pull, np.ones(6)))

    scored = score(target(12), list(strength), encode, label_clusters=3, seed=0).scored
    assert scored[0].loss == scored[1].loss > 0
    assert [item.descriptor for item in scored] == ["which is weak", "which is strong"]


def test_a_descriptor_that_makes_all_labels_equal_has_the_highest_loss_there_is() -> None:
    def encode(texts: Sequence[str]) -> Float32:
        return np.concatenate([hashed()(["same" if "flat" in text else text]) for text in texts])

    ranking = score(target(20), [*POOL, "which is flat"], encode, label_clusters=6, seed=0)
    scored = ranking.scored
    crowded = sum(int(count) > 1 for count in np.bincount(ranking.assigned))
    assert scored[-1].descriptor == "which is flat"
    assert scored[-1].loss == crowded > 1


@pytest.mark.parametrize("count", [2, 7, 13, 40, 200])
def test_eq_4_tells_descriptors_apart_for_any_number_of_labels(count: int) -> None:
    """Half of the phrases move each label by chance, half of them pull all labels in one direction too."""
    pool = [f"which is {number}" for number in range(2, 18)]

    def encode(texts: Sequence[str]) -> Float32:
        said = [text.partition(", ")[2] for text in texts]
        pull = [np.multiply(len(phrase) > 11, vector(phrase, 6)) for phrase in said]
        return unit(hashed()(texts) + pull)

    ranking = score(target(count), pool, encode, label_clusters=16, seed=0)
    assert len(set(ranking.assigned.tolist())) <= max(1, min(16, count // 3))
    assert len({item.loss for item in ranking.scored}) > 1
    assert len({item.rise for item in ranking.scored}) == len(pool)


@pytest.mark.parametrize(
    ("labels", "clusters"), [(2, 1), (5, 1), (6, 2), (7, 2), (13, 4), (40, 13), (47, 15), (48, 16), (200, 16)]
)
def test_there_are_a_third_as_many_clusters_as_labels_and_16_at_most(labels: int, clusters: int) -> None:
    """Labels that have nothing in common: no cluster loses the one that it began with."""
    assigned = cluster_labels(np.eye(labels, dtype=np.float32), 16, seed=0)
    assert len(set(assigned.tolist())) == clusters


def test_lone_labels_count_for_nothing() -> None:
    """Three labels far away in one direction, three in another, and one in a third."""

    def encode(texts: Sequence[str]) -> Float32:
        places = [(0 if "0" <= text.split("thing ")[1][0] <= "2" else 1) for text in texts]
        rows = np.eye(3)[[2 if "thing 6" in text else p for p, text in zip(places, texts, strict=True)]]
        return unit(rows + 0.1 * hashed(dim=3)(texts))

    ranking = score(target(9), POOL, encode, label_clusters=3, seed=0)
    (alone,) = np.flatnonzero(np.bincount(ranking.assigned) == 1)
    assert ranking.assigned[6] == alone
    assert all(alone not in item.collapsed for item in ranking.scored)


def test_deterministic() -> None:
    one, two = (score(target(25), POOL, hashed(), label_clusters=5, seed=3) for _ in range(2))
    assert one.scored == two.scored and one.assigned.tolist() == two.assigned.tolist()
    assert one.effects.tobytes() == two.effects.tobytes()


def test_equal_labels_and_empty_clusters_are_borne() -> None:
    """Many small cases, to meet cells that lose all their labels; warnings are errors here."""
    for seed in range(10):
        random = np.random.default_rng(seed)
        features = unit(random.normal(size=(int(random.integers(2, 9)), 2)))
        features = features[random.integers(0, len(features), 12)]

        def encode(texts: Sequence[str], fixed: Float32 = features) -> Float32:
            return fixed

        clusters = score(target(12), POOL[:1], encode, label_clusters=8, seed=seed).assigned
        for label, other in np.argwhere((features[:, None] == features[None]).all(axis=2)):
            assert clusters[label] == clusters[other]


def test_clusters_against_pairs_one_by_one() -> None:
    """Empty clusters, lone labels and any number of descriptors at once."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        labels, many = int(random.integers(2, 30)), int(random.integers(1, 5))
        assigned = random.integers(0, int(random.integers(1, 9)), size=labels)
        features = on_grid(unit(random.normal(size=(many * labels, 5)))).reshape(many, labels, 5)
        clusters = Clusters.of(assigned)
        found = clusters.mean_cosines(features)
        crowded = [number for number in range(9) if (assigned == number).sum() > 1]
        assert clusters.numbers.tolist() == crowded and found.shape == (many, len(crowded))
        for place, number in enumerate(crowded):
            mine = features[:, assigned == number]
            assert found[:, place] == pytest.approx(
                np.einsum("dik,djk->d", mine, mine) / mine.shape[1] ** 2, abs=1e-7
            )
        assert (clusters.mean_cosines(features[:1]) == found[:1]).all()


def test_descriptors_stream_and_a_chunk_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tower never sees more texts at once than it was promised, however many labels and descriptors."""
    calls: list[int] = []

    def encode(texts: Sequence[str]) -> Float32:
        calls.append(len(texts))
        return hashed()(texts)

    whole = score(target(30), POOL, hashed(), label_clusters=4, seed=0)
    monkeypatch.setattr(descriptor_selection, "TEXTS_AT_ONCE", 70)
    parts = score(target(30), POOL, encode, label_clusters=4, seed=0)
    assert calls == [30, 60, 60, 60, 60]
    assert parts.scored == whole.scored and parts.effects.tobytes() == whole.effects.tobytes()


def test_clear_clusters_are_found() -> None:
    random = np.random.default_rng(0)
    centers = np.eye(4)
    truth = np.repeat(np.arange(4), 6)
    features = unit(centers[truth] + 0.05 * random.normal(size=(24, 4)))
    clusters = cluster_labels(features, 4, seed=0)
    assert len({(int(a), int(b)) for a, b in zip(truth, clusters, strict=True)}) == 4


def test_clusters_do_not_hang_on_the_last_bits_of_a_sum() -> None:
    """The same labels with their dimensions in another order: products are summed in another order too."""
    for seed in range(20):
        features = unit(np.random.default_rng(seed).normal(size=(60, 48)))
        turned = features[:, np.random.default_rng(seed + 99).permutation(48)]
        first, second = Clusters.of(cluster_labels(features, 9, 1)), Clusters.of(cluster_labels(turned, 9, 1))
        assert first.order.tolist() == second.order.tolist()
        cosines = first.mean_cosines(on_grid(features)[None])
        assert (cosines == second.mean_cosines(on_grid(turned)[None])).all()


def ranking(losses: Sequence[int], effects: Float32) -> Ranking:
    scored = tuple(Scored(f"d{n}", loss, n / 64, ()) for n, loss in enumerate(losses))
    return Ranking(scored, effects, np.zeros(2, np.int64))


def test_near_copies_give_way_to_others() -> None:
    """0, 1 and 4 point in one direction, 2 and 5 in another, 3 in a third."""
    effects = np.eye(3, dtype=np.float32)[[0, 0, 1, 2, 0, 1]]
    some = ranking([0, 0, 0, 1, 1, 2], effects)
    assert some.choose(2, 0.9) == ["d0", "d2"]
    assert some.choose(3, 0.9) == ["d0", "d2", "d3"]
    assert some.choose(5, 0.9) == ["d0", "d2", "d3", "d1", "d4"]
    assert some.choose(3, 1.0) == ["d0", "d1", "d2"]
    assert some.choose(9, 0.9) == ["d0", "d2", "d3", "d1", "d4", "d5"]


def test_only_near_copies_are_passed_over_for_a_higher_loss() -> None:
    for seed in range(30):
        random = np.random.default_rng(seed)
        effects = unit(random.normal(size=(40, 3)))
        losses = np.sort(random.integers(0, 4, 40)).tolist()
        chosen = [int(name[1:]) for name in ranking(losses, effects).choose(8, 0.8)]
        cosines = effects.astype(np.float64) @ effects.T
        assert chosen == sorted(chosen) and 0 in chosen
        for place in range(max(chosen)):
            before = [other for other in chosen if other < place]
            assert (place in chosen) == (max((cosines[place, other] for other in before), default=-1) <= 0.8)


def test_an_effect_is_where_a_descriptor_moves_the_labels() -> None:
    def encode(texts: Sequence[str]) -> Float32:
        plain = hashed(own=0.0)([text.split(",")[0].strip(".") for text in texts])
        return unit(plain + [np.eye(6)[2] * ("blue" in text) for text in texts])

    found = score(target(50), ["which is blue", "which is red"], encode, label_clusters=4, seed=0)
    effects = {item.descriptor: effect for item, effect in zip(found.scored, found.effects, strict=True)}
    assert effects["which is blue"][2] > 0.9 and not effects["which is red"].any()


@pytest.mark.parametrize("near_copy", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("count", [2, 7, 13, 40])
def test_the_order_of_the_pool_decides_between_exact_ties_only(count: int, near_copy: float) -> None:
    """Each word stands twice in the pool: as far as the tower can tell, "which is 7!" is "which is 7"."""
    pool = [f"which is {number}{mark}" for number in range(30) for mark in ("", "!")]

    def encode(texts: Sequence[str]) -> Float32:
        return hashed()([text.replace("!", "") for text in texts])

    def chosen(phrases: list[str]) -> list[str]:
        found = score(target(count), phrases, encode, label_clusters=16, seed=0)
        return found.choose(12, near_copy)

    first, random = chosen(pool), np.random.default_rng(count)
    swapped = 0
    for _ in range(12):
        turned = [pool[place] for place in random.permutation(len(pool))]
        other = chosen(turned)
        assert [phrase.strip("!") for phrase in other] == [phrase.strip("!") for phrase in first]
        for phrase in other:  # of two that tie, the one that comes first in the pool
            twin = phrase.removesuffix("!") + "!" * (not phrase.endswith("!"))
            assert twin in other or turned.index(phrase) < turned.index(twin)
        swapped += other != first
    assert swapped


def test_random_choice() -> None:
    chosen = random_choice(POOL, 5, seed=1)
    assert len(set(chosen)) == 5 and set(chosen) <= set(POOL)
    assert random_choice(POOL, 5, seed=1) == chosen
    assert sorted(random_choice(POOL, 99, seed=1)) == sorted(POOL)
    assert len({tuple(random_choice(POOL, 5, seed)) for seed in range(9)}) > 1
