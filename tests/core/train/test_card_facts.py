"""What a card tells of a model's origin."""

from __future__ import annotations

from typing import Any

import pytest

from mudg_core.errors import DataError
from mudg_core.train.classifiers import MadeFrom, card_facts, public_name, public_url, read_verdict
from tests.support.handed import SPEC, Made, make_all
from tests.support.training_sets import make, store_at


@pytest.fixture
def made(tmp_path: Any) -> Made:
    return make_all(store_at(tmp_path))


def gathered(made: Made, **changes: Any) -> Any:
    refs = MadeFrom(**(made.refs | changes))
    return card_facts(
        made.store, refs, target="things", description="d", base="local-dir:/home/me", temperature=20.0
    )


def test_images_are_counted_by_source(made: Made) -> None:
    found = gathered(made)
    assert [(o.kind, o.name, o.shards, o.images) for o in found.origins] == [
        ("webdataset", "s3://bucket/pool", 2, 3),
        ("links", "a local folder (list.parquet)", 1, 2),
        ("demo", "the demo world", 1, 1),
    ]
    assert (found.corpus_rows, found.corpus_shards) == (500, 4)
    assert found.images == (4, 2, 0) and sum(found.images) == 6


def test_what_it_was_made_from_is_named_by_whole_keys(made: Made) -> None:
    told = gathered(made).made_from
    refs = made.refs
    assert told["model"] == f"model/{refs['model'].key}" and told["index"] == f"index/{refs['index'].key}"
    assert set(told) == {"model", "dataset", "queries", "index"}
    more = gathered(made, scores=made.scores, verdict=made.verdict(0.5), warnings=made.warnings)
    assert set(more.made_from) == {*told, "scores", "verdict", "warnings"}


def test_settings_and_seed_are_those_of_the_stages(made: Made) -> None:
    found = gathered(made)
    assert found.settings == {
        "train.iterations": 4,
        "dataset.min_cosine": 0.25,
        "augment.count": 2,
    }
    assert found.seed == 5 and found.base_digest == "cd" * 32 and found.alpha == 1.0
    assert found.base == "a local folder of open_clip"


def test_f98_a_card_names_the_precision_that_a_gpu_computed_in(made: Made) -> None:
    """Stages differ in it. On a CPU there is no such entry, as above."""
    model = {"inputs": {"seed": 5}, "train.precision": "auto", "precision": "cuda bf16"}
    queries = {"augment.count": 2, "precision": "cuda mixed-fp16"}
    on_gpu = {
        "model": make(made.store, "model", model, {"x": {}}),
        "queries": make(made.store, "queries", queries, {"queries.json": SPEC}),
    }
    found = gathered(made, **on_gpu).settings
    assert found["precision of model"] == "cuda bf16"
    assert found["precision of queries"] == "cuda mixed-fp16"


def test_scores_are_of_the_first_seed(made: Made) -> None:
    found = gathered(made, scores=made.scores)
    assert found.scores["mudg"]["single"]["mean"] == 60.0 and set(found.scores) == {"zero_shot", "mudg"}
    assert found.over_seeds == (60.0, 50.0)
    assert gathered(made).scores == {} and gathered(made).over_seeds == ()


def test_warnings_and_verdict(made: Made) -> None:
    found = gathered(made, warnings=made.warnings, verdict=made.verdict(0.25))
    assert found.warnings == ("few images of cat",)
    assert found.verdict is not None and (found.alpha, found.verdict.better) == (0.25, True)
    assert found.verdict.reasons == ("agreement",)


@pytest.mark.parametrize(
    "body", [{"alpha": 1.5, "better": True, "reasons": []}, {"alpha": 1}, [], {"alpha": "x"}]
)
def test_what_is_no_verdict_is_refused(made: Made, body: Any) -> None:
    ref = make(made.store, "verdict", {"n": str(body)}, {"verdict.json": body})
    with pytest.raises(DataError):
        read_verdict(made.store, ref)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ViT-B-16/openai", "ViT-B-16/openai"),
        ("demo:student", "demo:student"),
        ("local-dir:/home/me/secret", "a local folder of open_clip"),
        ("ViT-B-16//home/me/x.safetensors", "ViT-B-16 with weights from a local file"),
    ],
)
def test_places_on_a_disk_are_not_told(name: str, told: str) -> None:
    assert public_name(name) == told


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://bucket/pool", "s3://bucket/pool"),
        ("file:///home/me/pool/", "a local folder (pool)"),
        ("https://me:secret@x.example/pool?token=1", "https://x.example/pool"),
    ],
)
def test_addresses_are_told_without_what_is_private(url: str, told: str) -> None:
    assert public_url(url) == told
