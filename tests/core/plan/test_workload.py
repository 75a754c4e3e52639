"""Amounts: what follows from settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mudg_core.errors import InputError, ModelError
from mudg_core.plan.workload import workload
from mudg_core.settings import Settings
from tests.core.plan.making import paper, small


def test_the_papers_amounts() -> None:
    work = paper()
    assert (work.rows, work.dim, work.pairs, work.cells) == (2_170_000_000, 768, 20_000_000, 131_072)
    assert (work.classes, work.hits, work.picks) == (1_000, 1_024_000, 96_000)


def test_q_of_p_is_over_the_whole_corpus_unless_told() -> None:
    assert small().pair_images == 1000
    assert workload(Settings(), pair_images=5).pair_images == 5
    with pytest.raises(InputError, match="24001 images of a corpus of 24000"):
        workload(Settings(), pair_images=24_001)


def test_a_small_corpus_trains_on_all_it_has() -> None:
    assert workload(Settings()).pairs == 24_000


def test_queries_are_of_ten_classes_unless_told() -> None:
    assert (small().queries, small().classes) == (160, 10)
    assert small(augment={"method": "none"}).queries == 10
    assert small(augment={"method": "waffle-words"}).queries == 80
    assert workload(Settings(), queries=17).classes == 2


def test_no_more_images_than_the_corpus_has() -> None:
    work = small(dataset={"per_class": 5_000})
    assert work.candidates == work.picks == 1000


def test_the_pool_is_the_users_own_if_there_is_one(tmp_path: Path) -> None:
    file = tmp_path / "pool.json"
    file.write_text(json.dumps({"cat": ["whiskers", "a long tail"]}))
    assert workload(Settings().replace({"augment": {"descriptors": str(file)}})).pool == 2
    assert workload(Settings()).pool > 100


@pytest.mark.parametrize("model", ["ViT-X-99/openai", "ViT-L-14", "local-dir:none", "demo:none"])
def test_unknown_models_are_told(model: str) -> None:
    with pytest.raises(ModelError) as caught:
        workload(Settings().replace({"encode": {"model": model}}))
    assert caught.value.where == model


@pytest.mark.parametrize("content", ["{", "[]", "5", '{"model_cfg": []}'])
def test_a_torn_configuration_is_told(content: str, tmp_path: Path) -> None:
    (tmp_path / "open_clip_config.json").write_text(content)
    settings: dict[str, Any] = {"train": {"model": f"local-dir:{tmp_path}"}}
    with pytest.raises(ModelError):
        workload(Settings().replace(settings))


def test_no_weights_are_needed(tmp_path: Path) -> None:
    tower = {"width": 32, "layers": 2}
    vision, text = tower | {"head_width": 16}, tower | {"heads": 2}
    config = {"embed_dim": 16, "vision_cfg": {"image_size": 64, "patch_size": 16, **vision}, "text_cfg": text}
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": config}))
    work = workload(Settings().replace({"encode": {"model": f"local-dir:{tmp_path}"}}))
    assert (work.dim, work.encoder.image.block_bytes) == (16, 4 * 16 * 17 * 32)
