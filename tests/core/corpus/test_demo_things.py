"""Every kind can be drawn in every style, is told from the others, and the captions speak the truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mudg_core.corpus.demo import ABSENT_STYLES, CORPUS_STYLES, KIND_SHARES, KINDS, STYLES, TARGETS, DemoWorld
from mudg_core.corpus.demo.captions import caption, with_article
from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.kinds import KIND_BY_NAME
from mudg_core.corpus.demo.scene import Facts, imagine
from mudg_core.corpus.demo.targets import evaluation_images

WORLD = DemoWorld(seed=11)


def _pixels(kind: str, style: str, index: int = 0) -> NDArray[np.float32]:
    return np.asarray(WORLD.portrait(kind, style, index), dtype=np.float32)


@pytest.mark.parametrize("style", STYLES)
def test_every_kind_draws_in_every_style(style: str) -> None:
    for kind in KINDS:
        image = WORLD.portrait(kind.name, style, 0)
        assert (image.mode, image.size) == ("RGB", (64, 64))
        assert np.asarray(image).std() > 8, f"{kind.name} in {style} is blank"


def test_kinds_look_different() -> None:
    pictures = np.stack([_pixels(kind.name, "blueprint").mean(axis=2).ravel() for kind in KINDS])
    apart = np.abs(pictures[:, None] - pictures[None]).mean(axis=2) + 99 * np.eye(len(KINDS))
    assert apart.min() > 3


def test_styles_have_different_statistics() -> None:
    def look(style: str) -> NDArray[np.float64]:
        shown = np.stack([_pixels(kind.name, style) for kind in KINDS[:20]])
        steps = np.abs(np.diff(shown, axis=2))
        return np.array([*shown.mean(axis=(0, 1, 2)), shown.std(), steps.mean(), 99 * (steps < 1).mean()])

    looks = np.stack([look(style) for style in STYLES])
    apart = np.abs(looks[:, None] - looks[None]).max(axis=2) + 99 * np.eye(len(STYLES))
    assert apart.min() > 10


def test_two_portraits_of_a_kind_differ() -> None:
    assert np.abs(_pixels("cat", "photo", 0) - _pixels("cat", "photo", 1)).mean() > 5


def test_world_is_as_large_as_promised() -> None:
    groups = [kind.group for kind in KINDS]
    assert groups.count("animal") >= 16 and groups.count("vehicle") >= 10
    assert sum(group in ("food", "plant") for group in groups) >= 12
    assert sum(group in ("building", "household", "clothes") for group in groups) >= 16
    assert min(KIND_SHARES.values()) > 0.004 and max(KIND_SHARES.values()) > 10 * min(KIND_SHARES.values())
    assert all(kind.parts and kind.synonyms for kind in KINDS) and len(KIND_BY_NAME) == len(KINDS)
    assert not set(ABSENT_STYLES) & set(CORPUS_STYLES)
    assert set(ABSENT_STYLES) | set(CORPUS_STYLES) == set(STYLES)


def test_captions_mostly_name_the_kind() -> None:
    named = 0
    for index in range(2000):
        dice = Dice(3, 1, index)
        facts = imagine(dice.pick(KINDS), "photo", dice)
        text = caption(facts, dice).lower()
        named += facts.kind.name in text or facts.kind.plural in text
    assert 0.75 < named / 2000 < 0.95


def test_captions_say_only_what_is_drawn() -> None:
    facts = Facts(KIND_BY_NAME["cat"], "photo", "orange", "stripes", None, 1, None, "meadow")
    untrue = ("spots", "spotted", " red", " blue", " small", " large", "night", "snow", "sketch", "comic")
    for index in range(500):
        text = f" {caption(facts, Dice(5, 1, index)).lower()} "
        assert not [word for word in untrue if word in text]


def test_descriptors_and_plain_templates_are_common() -> None:
    facts = Facts(KIND_BY_NAME["cat"], "photo", "orange", "stripes", None, 1, None, "meadow")
    texts = [caption(facts, Dice(6, 1, index)).lower() for index in range(2000)]
    assert sum("a photo of a cat." in text for text in texts) > 60
    assert sum("which has stripes" in text for text in texts) > 60
    assert sum(", which " in text for text in texts) > 400


def test_articles() -> None:
    assert with_article("apple") == "an apple" and with_article("red apple") == "a red apple"
    assert with_article("glasses") == "a pair of glasses" and with_article("cats", 2) == "two cats"


def test_targets_name_known_kinds_and_domains() -> None:
    for target in TARGETS:
        assert len(target.classes) == len(target.kinds) == len(set(target.kinds)) >= 12
        assert set(target.kinds) <= set(KIND_BY_NAME) and "{}" in target.template
        assert sum(domain in ABSENT_STYLES for domain in target.domains) == 2
        assert all(CORPUS_STYLES.get(domain, 0) < 0.1 for domain in target.domains)


def test_evaluation_images_are_labelled_class_by_class() -> None:
    target = TARGETS[0]
    labels = [label for _, label in evaluation_images(target, "neon", per_class=2, seed=1)]
    assert labels == [label for label in range(len(target.classes)) for _ in range(2)]
