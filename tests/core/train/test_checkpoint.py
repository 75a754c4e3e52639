"""A run that was stopped, however, goes on to the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mudg_core.encode.models import Clip
from mudg_core.errors import TrainingError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore, Checkpoints
from mudg_core.train.checkpoint import Checkpointer
from mudg_core.train.finetune import Finetuned, finetune
from tests.core.encode.tiny import another
from tests.core.train.test_finetune import LABELS, PROMPTS, pixels, raw, settings

KEY = "ab" * 32
RANDOM: dict[str, Any] = {"iterations": 5, "batch_size": 3, "min_crop": 0.4, "learning_rate": 0.05}


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(StorageSettings(url=f"file://{tmp_path}/store", cache_dir=str(tmp_path / "cache")))


def kept(store: ArtifactStore) -> Checkpoints:
    return Checkpoints(store.objects, "model", KEY)


def run(
    clip: Clip, store: ArtifactStore | None = None, stop_after: int | None = None, **changes: Any
) -> Finetuned:
    steps: list[int] = []
    stop: Callable[[], bool] = lambda: len(steps) == stop_after  # noqa: E731
    return finetune(
        another(clip),
        pixels(),
        LABELS,
        PROMPTS,
        settings(**RANDOM | changes),
        0,
        progress=lambda step, loss, rate: steps.append(step) if rate else None,
        checkpoints=kept(store) if store else None,
        interrupted=stop,
    )


@pytest.mark.parametrize(
    "changes",
    [{}, {"augmentations": "in-turn"}, {"momentum": 0.0, "loss": "contrastive"}, {"precision": "fp16"}],
    ids=str,
)
def test_f08_stopped_after_any_step_it_ends_as_if_it_had_not(
    loaded: Clip, store: ArtifactStore, changes: dict[str, Any]
) -> None:
    whole = run(loaded, **changes)
    for after in (1, 2):  # the second stop comes two steps after the first
        with pytest.raises(TrainingError, match="asked to stop") as caught:
            run(loaded, store, stop_after=after, **changes)
        assert "resume from there" in caught.value.fix
    found = kept(store).latest()
    assert found is not None and found.step == 3
    resumed = run(loaded, store, **changes)
    assert resumed.losses == whole.losses and raw(resumed) == raw(whole)


def test_without_a_store_nothing_is_promised(loaded: Clip) -> None:
    with pytest.raises(TrainingError, match="after step 2 of 5") as caught:
        run(loaded, stop_after=2)
    assert "store" in caught.value.fix


def test_f78_a_truncated_newest_checkpoint_falls_back(loaded: Clip, store: ArtifactStore) -> None:
    whole = run(loaded)
    with pytest.raises(TrainingError):
        run(loaded, store, stop_after=3, checkpoint_every=1)
    newest = max(kept(store).paths, key=lambda path: _step(store, path))
    found = store.objects.read(newest)
    assert found is not None
    store.objects.replace(newest, found[0][: len(found[0]) // 2], found[1])
    previous = kept(store).latest()
    assert previous is not None and previous.step == 2
    resumed = run(loaded, store)
    assert resumed.losses == whole.losses and raw(resumed) == raw(whole)


def _step(store: ArtifactStore, path: str) -> int:
    from mudg_core.storage.checkpoints import decode

    found = store.objects.read(path)
    assert found is not None
    return decode(found[0], "model", KEY).step


def test_f77_a_loss_that_is_not_finite_keeps_the_last_good_state(loaded: Clip, store: ArtifactStore) -> None:
    with pytest.raises(TrainingError):
        run(loaded, store, stop_after=2)
    good = kept(store).latest()
    with pytest.raises(TrainingError, match=r"loss became \w+ at step 4; the state after step 2") as caught:
        run(loaded, store, learning_rate=1e30)
    assert "learning_rate" in caught.value.fix
    left = kept(store).latest()
    assert good is not None and left is not None and left.step == good.step == 2


def test_f77_weights_that_are_not_finite_are_not_kept(loaded: Clip, store: ArtifactStore) -> None:
    with pytest.raises(TrainingError, match="is not finite after step 1"):
        run(loaded, store, learning_rate=1e37, temperature=1e4, checkpoint_every=1)
    assert kept(store).latest() is None


class Told:
    """A state that is only counted, and a store that only remembers."""

    def __init__(self) -> None:
        self.step, self.now = 0, 0.0
        self.saved: list[int] = []
        self.scaler: Any = self

    def check(self) -> None:
        pass

    def arrays(self) -> dict[str, Any]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def save(self, step: int, arrays: Any, facts: Any) -> None:
        self.saved.append(step)


@pytest.mark.parametrize(
    ("each", "expected"), [(1.0, [4, 8, 12]), (30.0, [2, 4, 6, 8, 10, 12]), (61.0, list(range(1, 13)))]
)
def test_kept_by_steps_or_by_time_whichever_is_sooner(each: float, expected: list[int]) -> None:
    told: Any = Told()
    keeper = Checkpointer(told, settings(checkpoint_every=4, checkpoint_seconds=60), clock=lambda: told.now)
    for _ in range(12):
        told.step, told.now = told.step + 1, told.now + each
        keeper.after_step(told, False)
    assert told.saved == expected


def test_earlier_losses_are_told_again(loaded: Clip, store: ArtifactStore) -> None:
    with pytest.raises(TrainingError):
        run(loaded, store, stop_after=2)
    told: list[tuple[int, bool]] = []
    finetune(
        another(loaded),
        pixels(),
        LABELS,
        PROMPTS,
        settings(**RANDOM),
        0,
        progress=lambda step, loss, rate: told.append((step, rate is None)),
        checkpoints=kept(store),
    )
    assert told == [(1, True), (2, True), (3, False), (4, False), (5, False)]
