"""Selection: a balanced and diverse choice among the images of each label.

The result is an ordered plan and not a final choice: each group of alternatives has a quota, and who comes
next when a link turns out to be dead is decided here, by the seed, and not by what happened to fail.

Labels are planned in spans, a bounded number of images at a time, wherever there is a free core. A label's
plan depends on the seed, the method and its own images, so neither spans nor other labels change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mudg_core.dataset.clusters import clusters
from mudg_core.dataset.selection_rules import BY_FEATURES, ORDERS, Images, Rule
from mudg_core.index.serial import SERIAL

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
Features = Callable[[Int64], Float32]  # of corpus rows
Span = tuple[int, int]  # first and last label

CLUSTER = "cluster"
IMAGES_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Planned:
    """What is added to some lines of the table; groups are numbered from 0."""

    lines: Int64
    group: Int64
    quota: Int64
    turn: Int64


def plan_selection(labelled: pa.Table, features: Features, rule: Rule, threads: int = 1) -> pa.Table:
    """The labelled images with three more columns: group (global number), quota of the group, and turn.

    `cluster` (paper): k-means into `per_class` groups on index features, one image of each, at random.
    The others: one group a label, in the order of `orders.py`; `none` keeps all of it.
    """
    plan = partial(plan_span, labelled, features, rule)
    with ThreadPoolExecutor(threads) as pool:
        return joined(labelled, pool.map(plan, label_spans(labelled)))


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


def plan_span(labelled: pa.Table, features: Features, rule: Rule, span: Span) -> Planned:
    """The plan for all labels from the first to the last of a span."""
    label, rows = labelled.column("label").to_numpy(), labelled.column("row").to_numpy()
    lines = np.flatnonzero((label >= span[0]) & (label <= span[1]))
    lines = lines[np.lexsort((rows[lines], label[lines]))]
    rows, ranks, cosines = (labelled.column(name).to_numpy()[lines] for name in ("row", "rank", "cosine"))
    needed = rule.method == CLUSTER or rule.method in BY_FEATURES
    vectors = features(rows) if needed else np.zeros((len(lines), 0), dtype=np.float32)
    group, quota, turn = (np.zeros(len(lines), dtype=np.int64) for _ in range(3))
    groups = 0
    with SERIAL:
        for own in _runs(label[lines]):
            images = Images(rows[own], ranks[own], cosines[own], vectors[own])
            group[own], quota[own], turn[own] = _plan_label(images, rule)
            group[own] += groups
            groups = int(group[own].max()) + 1
    return Planned(lines, group, quota, turn)


def joined(labelled: pa.Table, parts: Iterable[Planned]) -> pa.Table:
    """The table with the plans of all its spans, given in their order."""
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
    """Group, quota and turn of each image of a label. As many as asked for, or fewer, are all kept."""
    count = len(images.rows)
    if rule.method == CLUSTER:
        random = images.random(rule)
        few = count <= rule.per_class
        group = np.arange(count) if few else clusters(images.features, rule.per_class, random)
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
