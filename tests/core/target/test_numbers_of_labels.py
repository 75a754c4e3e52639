"""Eq. 4 with the built-in pool and the demo's text tower, for few labels and for many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mudg_core.corpus.demo.targets import TARGETS
from mudg_core.dataset.warning import warn_of_descriptors
from mudg_core.encode.models import load_clip
from mudg_core.settings import AugmentSettings
from mudg_core.target.descriptor_pool import built_in
from mudg_core.target.descriptor_selection import Encoder, Ranking, score
from mudg_core.target.prompts import augmentations
from mudg_core.target.queries import SPEC, Queries, write_queries
from mudg_core.target.ready import ready_spec
from mudg_core.target.spec import Target

READY = ("pets", "dtd", "eurosat", "office-home", "pacs", "vlcs", "terra-incognita")
TEXTS = 2 * 4509  # through the tower in one case, about: two labels take the whole pool


@pytest.fixture(scope="module")
def encode() -> Encoder:
    return load_clip("demo:index").encode_texts


def target(count: int) -> Target:
    """The first so many of all names that we have."""
    names = [name for one in (*TARGETS, *map(ready_spec, READY)) for name in one.classes]
    different = {name.casefold(): name for name in reversed(names)}
    return Target(name="t", classes=tuple(reversed(different.values()))[:count])


def part_of_pool(count: int) -> tuple[str, ...]:
    return built_in()[:: max(1, -(-count * len(built_in()) // TEXTS))]


def stored(spec: Target, settings: AugmentSettings, encode: Encoder, folder: Path) -> Any:
    """What the file of the target's queries says, from which its warnings are made."""
    chosen = augmentations(spec, settings, encode, part_of_pool(len(spec.classes)))
    write_queries(Queries.of(spec, chosen), chosen, folder, encode)
    return json.loads((folder / SPEC).read_text())


@pytest.mark.parametrize("count", [2, 7, 13, 40, 200])
def test_2_7_13_40_and_200_classes_get_descriptors_by_eq_4_or_a_warning(
    count: int, encode: Encoder, tmp_path: Path
) -> None:
    settings = AugmentSettings(near_copy=1)
    body = stored(target(count), settings, encode, tmp_path)
    losses = {item["descriptor"]: item["loss"] for item in body["scored"]}
    assert len(body["classes"]) == count and len(body["clusters"]) <= max(1, min(16, count // 3))
    assert bool(warn_of_descriptors(body)) == (len(set(losses.values())) == 1)
    assert len(set(losses.values())) > 1  # so it was Eq. 4, with this tower: it kept the lowest losses
    assert sorted(losses.values())[:16] == [losses[phrase] for phrase in body["descriptors"]]
    assert body["descriptors"] != list(part_of_pool(count)[:16])


def test_a_pool_that_eq_4_cannot_tell_apart_gives_the_warning(tmp_path: Path) -> None:
    def encode(texts: Any) -> Any:  # every label is itself, whatever is said of it
        numbers = [["cat", "dog", "fox"].index(text.split()[4][:3]) for text in texts]
        return np.eye(3, dtype=np.float32)[numbers]

    body = stored(Target(name="t", classes=("cat", "dog", "fox")), AugmentSettings(), encode, tmp_path)
    (warning,) = warn_of_descriptors(body)
    assert warning.kind == "descriptors" and "Eq. 4 could not choose" in warning.message


def alike(ranking: Ranking, phrases: list[str], least: float) -> int:
    """Pairs of phrases that change the labels in nearly the same way."""
    places = [[item.descriptor for item in ranking.scored].index(phrase) for phrase in phrases]
    cosines = ranking.effects[places] @ ranking.effects[places].T
    return int((np.triu(cosines, 1) > least).sum())


def test_near_copies_do_not_fill_the_places_from_the_whole_pool(encode: Encoder) -> None:
    assert len(built_in()) == 4509
    ranking = score(target(2), built_in(), encode, label_clusters=16, seed=0)
    with_copies, without = (ranking.choose(16, near_copy) for near_copy in (1, 0.9))
    assert len(set(without)) == len(set(with_copies)) == 16
    assert alike(ranking, without, 0.9) == 0 < alike(ranking, with_copies, 0.9)
    assert ranking.choose(16, 0.9) == without
