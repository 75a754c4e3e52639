"""The ways to say a class: one switch, one shape, and each what its name says."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mudg_core.corpus.demo.targets import TARGET_BY_NAME
from mudg_core.encode.models import load_clip
from mudg_core.errors import InputError
from mudg_core.settings import AugmentSettings
from mudg_core.target.descriptor_pool import built_in, word_list
from mudg_core.target.prompts import (
    METHODS,
    Augmentations,
    Wording,
    augmentations,
    waffle_characters,
    waffle_words,
    wording,
)
from mudg_core.target.spec import Target
from tests.core.target.test_descriptor_selection import hashed

TEMPLATES, WAFFLE_WORDS = word_list("templates"), word_list("waffle_words")
TARGET = Target(
    name="pets",
    classes=("cat", "dog", "red fox"),
    template="a photo of a {}, a pet.",
    synonyms={"cat": ("kitty",)},
)
PHRASES = {"cat": ["whiskers"], "Dog": ["a wet nose", "used for hunting"], "red fox": ["has a tail"] * 9}
COUNTS = {"none": 1, "cupl": 2, "waffle-words": 8, "waffle-characters": 8}
PROMPTS = {"cat": ["A cat sits."], "dog": ["Dogs bark.", "Look, a dog."], "red fox": ["One red fox."]}


def made(folder: Path, **changes: Any) -> Augmentations:
    """By way of the inputs that a flow hands to the stage, as JSON."""
    for name, tree in (("descriptors", PHRASES), ("prompts", PROMPTS)):
        (folder / f"{name}.json").write_text(json.dumps(tree))
    files: dict[str, Any] = {"prompts": str(folder / "prompts.json")}
    if changes["method"] == "per-class":
        files["descriptors"] = str(folder / "descriptors.json")
    settings = AugmentSettings(**({"count": 4, "pool": 50} | files | changes))
    words = Wording(**json.loads(json.dumps(asdict(wording(settings, TARGET)))))
    assert (words.classes, words.template) == (list(TARGET.classes), TARGET.template)
    return augmentations(TARGET, settings, hashed(), words.pool, words.by_class)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_matrix_of_prompts(method: str, tmp_path: Path) -> None:
    found = made(tmp_path, method=method)
    prompts = found.prompts(TARGET)
    assert found.method == method
    assert len(prompts) == len(found.descriptors) == COUNTS.get(method, 4)
    assert all(len(row) == 3 for row in prompts)
    assert made(tmp_path, method=method) == found
    if method != "cupl":
        assert all(
            name in prompt for row in prompts for name, prompt in zip(TARGET.classes, row, strict=True)
        )


def test_plain() -> None:
    assert augmentations(TARGET, AugmentSettings(method="none"), hashed()).prompts(TARGET) == [
        TARGET.prompts()
    ]


def test_pooled_methods_choose_from_the_part_of_the_pool_that_is_asked_for(tmp_path: Path) -> None:
    few = set(made(tmp_path, method="random", pool=4).descriptors)
    assert few == set(made(tmp_path, method="adaptive", pool=4).descriptors) < set(built_in())
    assert len(made(tmp_path, method="adaptive", pool=9).scored) == 9
    assert made(tmp_path, method="random", seed=1).descriptors != made(tmp_path, method="random").descriptors


def test_adaptive_says_why(tmp_path: Path) -> None:
    found = made(tmp_path, method="adaptive", label_clusters=2, near_copy=1)
    assert found.descriptors == tuple(item.descriptor for item in found.scored[:4])
    assert sorted(name for cluster in found.clusters for name in cluster) == sorted(TARGET.classes)
    assert all(len(found.clusters[number]) > 1 for item in found.scored for number in item.collapsed)
    assert any(item.collapsed for item in found.scored)


@pytest.mark.parametrize("count", [2, 7, 13])
def test_few_labels_get_descriptors_by_eq_4_from_a_real_tower(count: int) -> None:
    """In any order of the pool, and of four near-copies one at most."""
    target = Target(name="t", classes=TARGET_BY_NAME["vehicles-and-buildings"].classes[:count])
    decades = [phrase for phrase in built_in() if "advertisement from the" in phrase]
    pool = [*decades, *built_in()[::150]]
    encode = load_clip("demo:index").encode_texts
    found = augmentations(target, AugmentSettings(count=8), encode, pool)
    losses = {item.descriptor: item.loss for item in found.scored}
    assert len(set(losses.values())) > 1 and min(losses.values()) == losses[str(found.descriptors[0])]
    assert len(decades) == 4 and len(set(decades) & set(found.descriptors)) <= 1
    turned = augmentations(target, AugmentSettings(count=8), encode, pool[::-1])
    assert (turned.descriptors, turned.scored) == (found.descriptors, found.scored)


def test_waffles_are_noise_of_their_kind(tmp_path: Path) -> None:
    words, letters = (made(tmp_path, method=f"waffle-{kind}").descriptors for kind in ("words", "characters"))
    assert len(set(words)) == len(set(letters)) == 8  # whatever augment.count is
    for waffle in words:
        assert set(str(waffle).removeprefix("which has ").split()) <= set(WAFFLE_WORDS)
    assert all(re.fullmatch(r"which has [a-z]{4,8} [a-z]{4,8}", str(waffle)) for waffle in letters)
    assert made(tmp_path, method="waffle-words", seed=1).descriptors != words
    assert len(set(waffle_characters(1000, 0))) == len(set(waffle_words(1000, 0))) == 1000


def test_templates_are_many_and_each_has_one_slot() -> None:
    assert len(set(TEMPLATES)) == len(TEMPLATES) >= 32
    assert all(template.count("{}") == 1 and template.endswith(".") for template in TEMPLATES)
    found = augmentations(TARGET, AugmentSettings(method="templates", count=1000), hashed())
    assert len(found.templates) == len(TEMPLATES)
    assert found.prompts(TARGET)[1] == [TEMPLATES[1].format(name) for name in TARGET.classes]


def test_phrases_of_a_class_are_cycled(tmp_path: Path) -> None:
    rows = made(tmp_path, method="per-class").prompts(TARGET)
    assert [row[0] for row in rows] == ["a photo of a cat, a pet, which has whiskers."] * 4
    assert [row[1].split(", ")[2] for row in rows] == [
        "which is a wet nose.",
        "which is used for hunting.",
    ] * 2
    assert {row[2] for row in rows} == {"a photo of a red fox, a pet, which has a tail."}


def test_whole_prompts_stay_as_they_are_and_synonyms_stand_in(tmp_path: Path) -> None:
    found = made(tmp_path, method="cupl")
    assert found.prompts(TARGET) == [
        ["A cat sits.", "Dogs bark.", "One red fox."],
        ["A cat sits.", "Look, a dog.", "One red fox."],
    ]
    assert found.texts(TARGET) == [
        (0, "A cat sits."),
        (0, "A kitty sits."),
        (1, "Dogs bark."),
        (1, "Look, a dog."),
        (2, "One red fox."),
    ]


def test_a_name_is_not_found_inside_a_word() -> None:
    target = Target(name="t", classes=("cat", "dog"), synonyms={"cat": ("puss",)})
    settings = AugmentSettings(method="cupl")
    found = augmentations(target, settings, hashed(), by_class=[["A cat on a catalog."], ["x"]])
    assert found.texts(target)[1] == (0, "A puss on a catalog.")


@pytest.mark.parametrize(("method", "setting"), [("per-class", "descriptors"), ("cupl", "prompts")])
def test_a_method_without_its_file_says_which(method: str, setting: str) -> None:
    with pytest.raises(InputError) as caught:
        wording(AugmentSettings.model_validate({"method": method}), TARGET)
    assert f"augment.{setting}" in caught.value.fix


def test_only_what_decides_the_queries_is_in_their_key(tmp_path: Path) -> None:
    """The pool does for methods that choose from it; other names of a class always do."""
    keys = {m: wording(AugmentSettings.model_validate({"method": m}), TARGET) for m in METHODS[:5]}
    assert keys["adaptive"].pool_digest == keys["random"].pool_digest != ""
    assert keys["templates"].pool_digest == keys["waffle-words"].pool_digest == ""
    assert all(key.synonyms == {"cat": ["kitty"]} for key in keys.values())
    file = tmp_path / "pool.txt"
    file.write_text("two legs\n")
    own = wording(AugmentSettings(descriptors=str(file)), TARGET)
    assert own.pool == ["which has two legs"] and own.pool_digest != keys["adaptive"].pool_digest


def test_permuting_the_classes_permutes_the_prompts_and_nothing_else() -> None:
    """With the same clusters, which three labels in one cluster have."""
    turned = Target(name="t", classes=("red fox", "cat", "dog"), template=TARGET.template)
    settings = AugmentSettings(label_clusters=1, count=6, pool=40)
    one, two = (augmentations(target, settings, hashed()) for target in (TARGET, turned))
    assert one.descriptors == two.descriptors
    rows = np.array(one.prompts(TARGET))[:, [2, 0, 1]]
    assert rows.tolist() == two.prompts(turned)
