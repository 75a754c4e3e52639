"""What a run decides before its stages begin."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from mudg_core.settings import Settings, StorageSettings, load_settings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.gc.leases import read_leases
from mudg_core.target.spec import Target
from tasks.run import Run
from tests.core.storage.making import maker, recipe

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("shards", "workers", "most", "expected"),
    [
        (64, 2, 32, 16),
        (12, 2, 32, 3),
        (1000, 2, 32, 32),
        (64, 2, 1, 1),
        (3, 8, 32, 1),
        (0, 2, 32, 1),
        (5, 1, 32, 3),
    ],
)
def test_shards_share_a_task_while_workers_stay_busy(
    shards: int, workers: int, most: int, expected: int, tmp_path: Path
) -> None:
    compute = {"workers": workers, "shards_per_task": most}
    settings = Settings().replace({"compute": compute, "storage": {"url": f"file://{tmp_path}"}})
    assert Run(settings).shards_per_task(shards) == expected


def test_a_run_holds_a_lease_on_what_it_uses_and_gives_it_up(tmp_path: Path) -> None:
    store = ArtifactStore(StorageSettings(url=f"file://{tmp_path}", cache_dir=str(tmp_path / "cache")))
    ref = store.build(recipe(), maker())
    run = Run(Settings().replace({"storage": store.settings.model_dump()}))
    assert read_leases(store.objects) == []  # nothing to claim yet
    run.use([ref])
    (lease,) = read_leases(store.objects)
    assert lease.keeps == (f"{ref.stage}/{ref.key}",)
    del run
    gc.collect()
    assert read_leases(store.objects) == []


@pytest.mark.parametrize(
    ("model", "changes", "expected"),
    [
        ("ViT-B-16/openai", {}, (128, 6.4e-4)),
        ("ViT-L-14/openai", {}, (64, 1.6e-4)),
        ("ViT-L-14/openai", {"batch_size": 128}, (128, 1.6e-4)),
        ("ViT-L-14/openai", {"learning_rate": 0.01}, (64, 0.01)),
        ("ViT-B-16/openai", {"batch_size": 2, "learning_rate": 0.5}, (2, 0.5)),
        ("RN50/openai", {}, (128, 6.4e-4)),
        ("demo:student", {}, (128, 6.4e-4)),
        ("local-dir:/nowhere", {}, (128, 6.4e-4)),  # what needs it will say so
    ],
)
def test_batch_and_rate_follow_the_student(
    model: str, changes: dict[str, float], expected: tuple[int, float], tmp_path: Path
) -> None:
    """They are numbers before a key is made of them."""
    storage, train = {"url": f"file://{tmp_path}"}, {"model": model, **changes}
    found = Run(Settings().replace({"storage": storage, "train": train})).settings.train
    assert (found.batch_size, found.learning_rate) == expected


def test_the_paper_s_scale_has_the_batch_and_rate_of_its_student(tmp_path: Path) -> None:
    """Also as a target's own student, over a run that has another."""
    storage = {"url": f"file://{tmp_path}"}
    paper = load_settings([ROOT / "mudg/cli/paper.yaml"], {"storage": storage}, {})
    run = Settings().replace({"storage": storage})
    spec = {"name": "t", "classes": ("a", "b"), "settings": {"train": {"model": "ViT-L-14/openai"}}}
    own = run.replace(Target.model_validate(spec).overrides(run))
    for asked in (paper, own):
        train = Run(asked).settings.train
        assert (train.model, train.batch_size, train.learning_rate) == ("ViT-L-14/openai", 64, 1.6e-4)
