"""Adaptive label augmentation against Eq. 4 written as loops, with a text tower that is a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest

from mudg_core.target import augment
from mudg_core.target.augment import Clusters, Encoder, cluster_labels, random_choice, score
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
    scored, clusters = score(spec, POOL, encode, label_clusters=label_clusters, seed=0)
    assert len(clusters) == classes and len(set(clusters.tolist())) <= min(label_clusters, classes)
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
    scored, _ = score(target(40), POOL, hashed(), label_clusters=16, seed=0)
    assert len({item.loss for item in scored}) > 1


def test_exact_ties_keep_the_order_of_the_pool() -> None:
    def encode(texts: Sequence[str]) -> Float32:
        return hashed()([text.split(",")[0].strip(".") + "." for text in texts])

    pool = ["which is z", "which is a", "which is m"]
    scored, _ = score(target(9), pool, encode, label_clusters=3, seed=0)
    assert [(item.descriptor, item.loss, item.rise) for item in scored] == [(d, 0, 0.0) for d in pool]


def test_ties_of_the_loss_go_to_the_smaller_rise() -> None:
    """Both pull every cluster together; the first does so more."""
    strength = {"which is strong": 3.0, "which is weak": 1.0}

    def encode(texts: Sequence[str]) -> Float32:
        plain = hashed(own=0.0)([text.split(",")[0].strip(".") for text in texts])
        pull = [next((s for d, s in strength.items() if d in text), 0.0) for text in texts]
        return unit(plain + np.outer(pull, np.ones(6)))

    scored, _ = score(target(12), list(strength), encode, label_clusters=3, seed=0)
    assert scored[0].loss == scored[1].loss > 0
    assert [item.descriptor for item in scored] == ["which is weak", "which is strong"]


def test_a_descriptor_that_makes_all_labels_equal_has_the_highest_loss_there_is() -> None:
    def encode(texts: Sequence[str]) -> Float32:
        return np.concatenate([hashed()(["same" if "flat" in text else text]) for text in texts])

    scored, clusters = score(target(20), [*POOL, "which is flat"], encode, label_clusters=6, seed=0)
    crowded = sum(int(count) > 1 for count in np.bincount(clusters))
    assert scored[-1].descriptor == "which is flat"
    assert scored[-1].loss == crowded > 1


def test_lone_labels_count_for_nothing() -> None:
    scored, clusters = score(target(3), POOL, hashed(), label_clusters=16, seed=0)
    assert len(set(clusters.tolist())) == 3
    assert all((item.loss, item.rise) == (0, 0.0) for item in scored)


def test_deterministic() -> None:
    one, two = (score(target(25), POOL, hashed(), label_clusters=5, seed=3) for _ in range(2))
    assert one[0] == two[0] and one[1].tolist() == two[1].tolist()


def test_equal_labels_and_empty_clusters_are_borne() -> None:
    """Many small cases, to meet cells that lose all their labels; warnings are errors here."""
    for seed in range(10):
        random = np.random.default_rng(seed)
        features = unit(random.normal(size=(int(random.integers(2, 9)), 2)))
        features = features[random.integers(0, len(features), 12)]

        def encode(texts: Sequence[str], fixed: Float32 = features) -> Float32:
            return fixed

        _, clusters = score(target(12), POOL[:1], encode, label_clusters=8, seed=seed)
        for label, other in np.argwhere((features[:, None] == features[None]).all(axis=2)):
            assert clusters[label] == clusters[other]


def test_clusters_against_pairs_one_by_one() -> None:
    """Empty clusters, lone labels and any number of descriptors at once."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        labels, many = int(random.integers(2, 30)), int(random.integers(1, 5))
        assigned = random.integers(0, int(random.integers(1, 9)), size=labels)
        features = unit(random.normal(size=(many * labels, 5))).reshape(many, labels, 5)
        clusters = Clusters.of(assigned)
        found = clusters.mean_cosines(features)
        crowded = [number for number in range(9) if (assigned == number).sum() > 1]
        assert clusters.numbers.tolist() == crowded and found.shape == (many, len(crowded))
        for place, number in enumerate(crowded):
            mine = features[:, assigned == number].astype(np.float64)
            assert found[:, place] == pytest.approx(np.einsum("dik,djk->d", mine, mine) / mine.shape[1] ** 2)
        assert (clusters.mean_cosines(features[:1]) == found[:1]).all()


def test_descriptors_stream_and_a_chunk_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tower never sees more texts at once than it was promised, however many labels and descriptors."""
    calls: list[int] = []

    def encode(texts: Sequence[str]) -> Float32:
        calls.append(len(texts))
        return hashed()(texts)

    whole, _ = score(target(30), POOL, hashed(), label_clusters=4, seed=0)
    monkeypatch.setattr(augment, "TEXTS_AT_ONCE", 70)
    parts, _ = score(target(30), POOL, encode, label_clusters=4, seed=0)
    assert calls == [30, 60, 60, 60, 60]
    assert parts == whole


def test_clear_clusters_are_found() -> None:
    random = np.random.default_rng(0)
    centers = np.eye(4)
    truth = np.repeat(np.arange(4), 6)
    features = unit(centers[truth] + 0.05 * random.normal(size=(24, 4)))
    clusters = cluster_labels(features, 4, seed=0)
    assert len({(int(a), int(b)) for a, b in zip(truth, clusters, strict=True)}) == 4


def test_random_choice() -> None:
    chosen = random_choice(POOL, 5, seed=1)
    assert len(set(chosen)) == 5 and set(chosen) <= set(POOL)
    assert random_choice(POOL, 5, seed=1) == chosen
    assert sorted(random_choice(POOL, 99, seed=1)) == sorted(POOL)
    assert len({tuple(random_choice(POOL, 5, seed)) for seed in range(9)}) > 1
