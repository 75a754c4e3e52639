"""Selection: a balanced and diverse choice among the images of each label, by clusters (the paper) or by
another rule (`selection_rules.py`).

The result is an ordered plan and not a final choice: each group of alternatives has a quota, and who comes
next when a link turns out to be dead is decided here, by the seed, and not by what happened to fail.

Labels are planned in spans, a bounded number of images at a time, wherever there is a free core. A label's
plan depends on the seed, the method and its own images, so neither spans nor other labels change it.

k-means on the images of one label is a small problem, a thousand times over. What counts is the work for
one: products of whole matrices, and in each iteration only for the centroids that have changed, soon few.
Copies of an image are one point of more weight, so that they share a cluster. Points and centroids lie on the
grid of `index.exact`: sums and products are exact, and so clusters are the same with any BLAS kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from mudg_core.dataset.candidates import Features
from mudg_core.dataset.selection_rules import BY_FEATURES, ORDERS, Images, Rule
from mudg_core.index.exact import ONE_BLAS_THREAD, on_grid
from mudg_core.index.vectors import Bool, Float32, Float64, Int64, normalised

Span = tuple[int, int]  # first and last label

CLUSTER = "cluster"
IMAGES_AT_ONCE = 1 << 14
ITERATIONS = 50  # at most: images rarely move for so long


@dataclass(frozen=True)
class SpanPlan:
    """What is added to some lines of the table; groups are numbered from 0."""

    lines: Int64
    group: Int64
    quota: Int64
    turn: Int64


def plan_selection(labelled: pa.Table, features: Features, rule: Rule, threads: int = 1) -> pa.Table:
    """The labelled images with three more columns: group (global number), quota of the group, and turn.

    `cluster` (paper): k-means into `per_class` groups on index features, one image of each, at random.
    The others: one group a label, in the order of `selection_rules.py`; `none` keeps all of it.
    """
    plan = partial(plan_span, labelled, features, rule)
    with ThreadPoolExecutor(threads) as pool:
        return join_plans(labelled, pool.map(plan, label_spans(labelled)))


def label_spans(labelled: pa.Table) -> list[Span]:
    """Whole labels, together as many images as may be in memory; a larger label is alone."""
    labels, counts = np.unique(labelled.column("label").to_numpy(), return_counts=True)
    spans: list[Span] = []
    room = 0
    for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
        if count > room:
            spans.append((label, label))
            room = IMAGES_AT_ONCE
        spans[-1] = spans[-1][0], label
        room -= count
    return spans


def plan_span(labelled: pa.Table, features: Features, rule: Rule, span: Span) -> SpanPlan:
    """The plan for all labels from the first to the last of a span."""
    label, rows = labelled.column("label").to_numpy(), labelled.column("row").to_numpy()
    lines = np.flatnonzero((label >= span[0]) & (label <= span[1]))
    lines = lines[np.lexsort((rows[lines], label[lines]))]
    rows, ranks, cosines = (labelled.column(name).to_numpy()[lines] for name in ("row", "rank", "cosine"))
    needed = rule.method == CLUSTER or rule.method in BY_FEATURES
    vectors = features(rows) if needed else np.zeros((len(lines), 0), dtype=np.float32)
    group, quota, turn = (np.zeros(len(lines), dtype=np.int64) for _ in range(3))
    groups = 0
    with ONE_BLAS_THREAD:
        for own in _runs(label[lines]):
            images = Images(rows[own], ranks[own], cosines[own], vectors[own])
            group[own], quota[own], turn[own] = _plan_label(images, rule)
            group[own] += groups
            groups = int(group[own].max()) + 1
    return SpanPlan(lines, group, quota, turn)


def join_plans(labelled: pa.Table, parts: Iterable[SpanPlan]) -> pa.Table:
    """The table with the plans of all its spans, in their order."""
    columns = {name: np.zeros(labelled.num_rows, dtype=np.int64) for name in ("group", "quota", "turn")}
    groups = 0
    for part in parts:
        columns["group"][part.lines] = part.group + groups
        columns["quota"][part.lines], columns["turn"][part.lines] = part.quota, part.turn
        groups += int(part.group.max()) + 1
    table = labelled
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def _runs(labels: Int64) -> list[slice]:
    """Where each label lies among sorted labels."""
    cuts = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    return [slice(first, end) for first, end in pairwise(cuts)]


def _plan_label(images: Images, rule: Rule) -> tuple[Int64, int, Int64]:
    """Group, quota and turn of each image of a label. `per_class` images, or fewer, are all kept."""
    count = len(images.rows)
    if rule.method == CLUSTER:
        random = images.random(rule)
        few = count <= rule.per_class
        group = np.arange(count) if few else cluster_images(images.features, rule.per_class, random)
        return group, 1, _random_turns(group, random)
    turn = np.empty(count, dtype=np.int64)
    turn[ORDERS[rule.method](images, rule)] = np.arange(count)
    return np.zeros(count, dtype=np.int64), count if rule.method == "none" else rule.per_class, turn


def _random_turns(groups: Int64, random: np.random.Generator) -> Int64:
    """Each member's place in a random order of its own group."""
    order = np.lexsort((random.random(len(groups)), groups))
    counts = np.bincount(groups)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    turns = np.empty(len(groups), dtype=np.int64)
    turns[order] = np.arange(len(groups)) - starts
    return turns


def cluster_images(features: Float32, count: int, random: np.random.Generator) -> Int64:
    """The cluster of each image: `count` of them, or one for each different image if those are fewer.

    No cluster is empty; they are numbered by their first members.
    """
    points, point = _distinct(features)
    if len(points) <= count:
        return point
    weights = np.bincount(point).astype(np.float64)
    return _by_first(_kmeans(on_grid(normalised(points)), weights, count, random)[point])


def _distinct(features: Float32) -> tuple[Float32, Int64]:
    """Different features in the order of their first copies, and which of them each image has."""
    whole = np.ascontiguousarray(features).view(np.dtype((np.void, features.shape[1] * features.itemsize)))
    _, first, copy = np.unique(whole.ravel(), return_index=True, return_inverse=True)
    return features[np.sort(first)], _by_first(copy.ravel())


def _by_first(numbers: Int64) -> Int64:
    """Renumbered from 0 in the order in which numbers first occur."""
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[inverse], dtype=np.int64)


def _kmeans(points: Float64, weights: Float64, count: int, random: np.random.Generator) -> Int64:
    """Lloyd's iterations from a k-means++ start, until nothing moves."""
    centroids = points[_start(points, weights, count, random)]
    scores = np.empty((len(points), count))
    own, stale = np.full(len(points), -1), np.ones(count, dtype=np.bool_)
    for _ in range(ITERATIONS):
        scores[:, stale] = _scores(points, centroids[stale])
        nearest = _none_empty(scores)
        moved = nearest != own
        if not moved.any():
            break
        stale[:] = False
        stale[nearest[moved]] = stale[own[moved]] = True
        own = nearest
        centroids[stale] = _means(points, weights, own, stale)
    return own


def _start(points: Float64, weights: Float64, count: int, random: np.random.Generator) -> Int64:
    """k-means++: each further point with a chance that grows with its squared distance from those before.

    Where the grid cannot tell what is left from what was chosen, a point may come twice; `_none_empty` gives
    the second of it another place.
    """
    draws, chosen = random.random(count), np.empty(count, dtype=np.int64)
    distance = np.full(len(points), 2.0)
    for turn, draw in enumerate(draws):
        chances = np.cumsum(weights * distance)
        place = np.searchsorted(chances, draw * chances[-1], side="right")
        chosen[turn] = min(int(place), len(points) - 1)
        away = 2 - 2 * (points @ points[chosen[turn]])
        distance = np.minimum(distance, np.maximum(away, 0))
        distance[chosen[turn]] = 0
    return chosen


def _scores(points: Float64, centroids: Float64) -> Float64:
    """The higher, the nearer."""
    halves = np.einsum("ij,ij->i", centroids, centroids) / 2
    return np.asarray(points @ centroids.T - halves, dtype=np.float64)


def _none_empty(scores: Float64) -> Int64:
    """The nearest centroid of each point; one without points gets the point that lies worst where it is."""
    nearest = np.asarray(scores.argmax(axis=1), dtype=np.int64)
    counts = np.bincount(nearest, minlength=scores.shape[1])
    for empty in np.flatnonzero(counts == 0):
        best = scores[np.arange(len(scores)), nearest]
        worst = int(np.argmin(np.where(counts[nearest] > 1, best, np.inf)))
        counts[nearest[worst]] -= 1
        nearest[worst], counts[empty] = empty, 1
    return nearest


def _means(points: Float64, weights: Float64, own: Int64, wanted: Bool) -> Float64:
    """Centroids of the wanted clusters, on the grid again."""
    members = np.flatnonzero(wanted[own])
    members = members[np.argsort(own[members], kind="stable")]
    counts = np.bincount(own, minlength=len(wanted))[wanted]
    starts = np.cumsum(counts) - counts
    heavy = weights[members][:, None]
    sums = np.add.reduceat(points[members] * heavy, starts, axis=0)
    return on_grid(sums / np.add.reduceat(heavy, starts))
