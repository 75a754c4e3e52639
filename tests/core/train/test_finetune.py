"""Finetuning a tiny model: the loss, the update, the average, and what may not change."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch

from mudg_core.encode.models import Clip
from mudg_core.errors import TrainingError
from mudg_core.settings import TrainSettings
from mudg_core.train.batches import Order, crops, draw_crops
from mudg_core.train.batches import crop as crop_at
from mudg_core.train.finetune import Finetuned, finetune, optimiser_of
from mudg_core.train.student import Student, trainable_names
from tests.core.encode.tiny import another

PROMPTS = [
    ["a photo of a cat.", "a photo of a red car.", "a photo of the sea."],
    [
        "a photo of a cat, which is wet.",
        "a photo of a red car, which is wet.",
        "a photo of the sea, which is wet.",
    ],
]
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1])


def pixels(seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Noise that reads the same from left and from right, so that flips do not matter."""
    half = np.random.default_rng(seed).integers(0, 256, (8, 64, 32, 3), dtype=np.uint8)
    return np.concatenate([half, half[:, :, ::-1]], axis=2)


def settings(**changes: Any) -> TrainSettings:
    base: dict[str, Any] = {
        "iterations": 2,
        "batch_size": 8,
        "learning_rate": 0.01,
        "min_crop": 1.0,
        "ema": 0.5,
    }
    return TrainSettings(**(base | changes))


def train(clip: Clip, prompts: list[list[str]] = PROMPTS, seed: int = 0, **changes: Any) -> Finetuned:
    return finetune(another(clip), pixels(), LABELS, prompts, settings(**changes), seed)


def weights(tuned: Finetuned) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tuned.student.state_dict().items()}


def raw(tuned: Finetuned) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in weights(tuned).values())


def test_same_seed_same_bytes(loaded: Clip) -> None:
    one, two, other = (train(loaded, seed=seed, min_crop=0.5, batch_size=4) for seed in (3, 3, 4))
    assert raw(one) == raw(two) and one.losses == two.losses
    assert raw(one) != raw(other)


def test_only_the_trained_parameters_change(loaded: Clip) -> None:
    before = loaded.network.state_dict()
    trained = set(trainable_names(loaded.network, 2))
    after = train(loaded, blocks=2).student.network.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == trained


def test_average_after_one_step(loaded: Clip) -> None:
    """ema * initial + (1 - ema) * new, where `new` is what a run without averaging ends with."""
    start = train(loaded, iterations=1, learning_rate=1e-30, ema=0.0)
    new = train(loaded, iterations=1, ema=0.0)
    averaged = train(loaded, iterations=1, ema=0.9)
    for name, initial in weights(start).items():
        expected = 0.9 * initial.double() + 0.1 * weights(new)[name].double()
        assert torch.allclose(weights(averaged)[name].double(), expected, atol=1e-6), name
    assert not torch.equal(weights(new)["soft_prompt"], weights(start)["soft_prompt"])
    assert averaged.initial_share == pytest.approx(0.9)
    assert train(loaded, iterations=3, ema=0.9).initial_share == pytest.approx(0.729)


def test_prompt_learns_ten_times_faster(loaded: Clip) -> None:
    start, slow, fast = (
        weights(train(loaded, iterations=1, ema=0.0, weight_decay=0.0, **changes))["soft_prompt"]
        for changes in ({"learning_rate": 1e-30}, {"prompt_rate_factor": 1.0}, {"prompt_rate_factor": 10.0})
    )
    assert torch.allclose(fast - start, 10 * (slow - start), rtol=1e-2, atol=1e-7)


def features(student: Student) -> tuple[torch.Tensor, list[torch.Tensor]]:
    with torch.no_grad():
        images = student.image_features(student.clip.normalise(pixels()))
        return images, [student.text_features(student.tokens(each)) for each in PROMPTS]


def loss_by_hand(student: Student, teacher: Student) -> float:
    """Eq. 5 by loops: lambda 0.2, logits 25 x cosine, teacher's 10 x cosine."""
    (images, texts), (old_images, old_texts) = features(student), features(teacher)
    total = 0.0
    for i, label in enumerate(LABELS.tolist()):
        for j in range(2):
            cosines = [float(images[i] @ text) for text in texts[j]]
            initial = [math.exp(10 * float(old_images[i] @ text)) for text in old_texts[j]]
            normaliser = math.log(sum(math.exp(25 * cosine) for cosine in cosines))
            for c, cosine in enumerate(cosines):
                target = 0.8 * (c == label) + 0.2 * initial[c] / sum(initial)
                total -= target * (25 * cosine - normaliser) / (8 * 2)
    return total


def test_losses_by_hand(loaded: Clip) -> None:
    """The second one too: by then the student has moved, and the teacher must not have."""
    start = Student(another(loaded), 3, "a photo of")
    moved = train(loaded, iterations=1, ema=0.0, teacher_temperature=10.0).student
    tuned = train(loaded, iterations=2, ema=0.0, teacher_temperature=10.0)
    expected = [loss_by_hand(start, start), loss_by_hand(moved, start)]
    assert tuned.losses == pytest.approx(expected, abs=2e-4)
    assert abs(expected[1] - loss_by_hand(moved, moved)) > 1e-3  # a teacher that follows would be noticed


def step_length(clip: Clip, **changes: Any) -> float:
    """How far one step moves all weights together."""
    one = {"iterations": 1, "ema": 0.0, "weight_decay": 0.0}
    start, moved = (weights(train(clip, **one, **changes, **more)) for more in ({"learning_rate": 1e-30}, {}))
    return math.sqrt(sum(float((moved[name] - start[name]).square().sum()) for name in start))


def test_soft_labels_teach_from_the_first_step(loaded: Clip) -> None:
    """A teacher that predicts what the student predicts, as it would at the student's own temperature, has
    nothing to teach: no gradient, for good."""
    hard, soft = (step_length(loaded, loss=loss) for loss in ("cross-entropy", "soft-labels"))
    assert soft > 0.1 * hard
    same = step_length(loaded, loss="soft-labels", soft_label_temperature=25.0)
    assert same < 1e-5 * hard


def test_empty_batch_and_rate_follow_the_student_without_a_run_too(
    loaded: Clip, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow fills them in before; whoever calls `finetune` alone gets the same."""
    used: list[TrainSettings] = []

    def noted(parameters: dict[str, torch.nn.Parameter], given: TrainSettings) -> torch.optim.Optimizer:
        used.append(given)
        return optimiser_of(parameters, given)

    monkeypatch.setattr("mudg_core.train.finetune.optimiser_of", noted)
    for large in (1024, 1):
        monkeypatch.setattr("mudg_core.settings.LARGE_WIDTH", large)
        train(loaded, batch_size=None, learning_rate=None, iterations=1)
    assert [(one.batch, one.rate) for one in used] == [(128, 6.4e-4), (64, 1.6e-4)]


def test_in_turn_is_one_augmentation_a_step(loaded: Clip) -> None:
    first = train(loaded, iterations=1, augmentations="in-turn")
    assert raw(first) == raw(train(loaded, PROMPTS[:1], iterations=1, augmentations="mean"))
    both = train(loaded, augmentations="in-turn")
    assert raw(both) != raw(train(loaded, augmentations="mean"))
    assert raw(both) != raw(train(loaded, PROMPTS[:1], augmentations="mean"))  # the second had its turn


def test_augmentation_limit(loaded: Clip) -> None:
    assert raw(train(loaded, augmentation_limit=1)) == raw(train(loaded, PROMPTS[:1]))


def test_f77_loss_that_is_not_finite(loaded: Clip) -> None:
    with pytest.raises(TrainingError, match="the loss became") as caught:
        train(loaded, learning_rate=1e30, iterations=5)
    assert "learning_rate" in caught.value.fix


def test_f77_the_last_update_is_checked_too(loaded: Clip) -> None:
    """No loss is computed after it, so nobody else would see it before the model is used."""
    with pytest.raises(TrainingError, match="not finite"):
        train(loaded, learning_rate=1e37, temperature=1e4, iterations=1)


def test_progress_is_told(loaded: Clip) -> None:
    told: list[tuple[int, float, float | None]] = []
    tuned = finetune(
        another(loaded),
        pixels(),
        LABELS,
        PROMPTS,
        settings(),
        0,
        lambda *what: told.append(what),
    )
    assert [(step, loss) for step, loss, _ in told] == list(enumerate(tuned.losses, 1))
    assert all(rate and rate > 0 for *_, rate in told)
    assert not tuned.student.network.training


def test_read_only_labels_are_fine(loaded: Clip) -> None:
    """As arrow hands them out."""
    labels = LABELS.copy()
    labels.flags.writeable = False
    assert finetune(another(loaded), pixels(), labels, PROMPTS, settings(), 0).losses


def test_a_separable_set_is_learnt(loaded: Clip) -> None:
    colours = np.array([[220, 30, 30], [30, 220, 30], [30, 30, 220]])
    labels = np.repeat(np.arange(3), 6)
    noise = np.random.default_rng(0).integers(-25, 25, (18, 64, 64, 3))
    images = (colours[labels][:, None, None] + noise).astype(np.uint8)
    tuned = finetune(
        another(loaded),
        images,
        labels,
        PROMPTS[:1],
        TrainSettings(iterations=60, batch_size=18, learning_rate=0.02, ema=0.0, diversity=0.0),
        seed=0,
    )
    student = tuned.student
    with torch.no_grad():
        texts = student.text_features(student.tokens(PROMPTS[0]))
        scores = student.image_features(loaded.normalise(images)) @ texts.T
    assert scores.argmax(dim=1).tolist() == labels.tolist()
    assert tuned.losses[-1] < 0.5 * tuned.losses[0]


def test_f98_auto_precision_is_one_rule_for_training_and_for_keys() -> None:
    names = {device: settings().precision_on(device) for device in ("cpu", "cuda", "cuda:1")}
    assert names == {"cpu": "fp32", "cuda": "bf16", "cuda:1": "bf16"}
    assert settings(precision="fp16").precision_on("cuda") == "fp16"


def test_batches_show_every_row_once_an_epoch() -> None:
    order = Order(10, torch.Generator().manual_seed(0))
    shown = torch.cat([order.take(4) for _ in range(5)]).tolist()
    assert sorted(shown[:10]) == sorted(shown[10:]) == list(range(10))
    assert shown[:10] != shown[10:]
    small = Order(3, torch.Generator().manual_seed(0)).take(7).tolist()
    assert sorted(small[:3]) == sorted(small[3:6]) == [0, 1, 2] and len(small) == 7


def crop(images: torch.Tensor, smallest: float, seed: int = 0) -> torch.Tensor:
    return crop_at(images, draw_crops(len(images), smallest, torch.Generator().manual_seed(seed)))


def test_crop_of_everything_is_the_image_or_its_mirror() -> None:
    images = torch.rand(40, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    mirrored = 0
    for before, after in zip(images, crop(images, 1.0), strict=True):
        same, flipped = (torch.allclose(after, image, atol=1e-4) for image in (before, before.flip(-1)))
        assert same or flipped
        mirrored += flipped
    assert 8 < mirrored < 32


@pytest.mark.parametrize("smallest", [0.1, 0.5, 0.9])
def test_crops_have_the_area_and_the_shape_they_may_have(smallest: float) -> None:
    """An image that holds its own coordinates tells where a crop was taken."""
    n, count = 32, 400
    place = (torch.arange(n) * 2 + 1) / n - 1
    image = torch.stack([place.expand(n, n), place[:, None].expand(n, n), torch.zeros(n, n)])
    before = copy.deepcopy(image)
    crops = crop(image.expand(count, 3, n, n), smallest)
    assert torch.equal(image, before)
    middle = n // 2
    wide = (crops[:, 0, middle, middle] - crops[:, 0, middle, middle - 1]) / (2 / n)
    high = (crops[:, 1, middle, middle] - crops[:, 1, middle - 1, middle]) / (2 / n)
    area, ratio = wide.abs() * high, wide.abs() / high
    assert area.min().item() >= smallest - 1e-3 and area.max().item() <= 1 + 1e-3
    assert area.max().item() - area.min().item() > 0.8 * (1 - smallest)
    assert ratio.min().item() >= 0.75 - 1e-2 and ratio.max().item() <= 4 / 3 + 1e-2
    across = (crops[:, 0, middle, middle] + crops[:, 0, middle, middle - 1]) / 2
    down = (crops[:, 1, middle, middle] + crops[:, 1, middle - 1, middle]) / 2
    assert (across.abs() + wide.abs()).max().item() <= 1 + 1e-3
    assert (down.abs() + high).max().item() <= 1 + 1e-3
    assert 0.3 < (wide < 0).float().mean().item() < 0.7


@pytest.mark.parametrize(("wide", "high"), [(64, 64), (256, 64), (64, 192), (90, 64)])
@pytest.mark.parametrize("smallest", [0.08, 0.5])
def test_crops_of_any_shape(wide: int, high: int, smallest: float) -> None:
    """Inside the image, no longer than four by three, of at least that area where the image allows it, and
    from one end of the image to the other."""
    count = 500
    theta = draw_crops(count, smallest, torch.Generator().manual_seed(0), torch.full((count,), wide / high))
    broad, tall, right, down = (theta[:, *at].abs() for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
    area, ratio = broad * tall, broad * wide / (tall * high)
    most = min(1, 4 / 3 / (max(wide, high) / min(wide, high)))
    assert area.min().item() >= min(smallest, most) - 1e-3 and area.max().item() <= most + 1e-3
    assert ratio.min().item() >= 0.75 - 1e-3 and ratio.max().item() <= 4 / 3 + 1e-3
    assert (broad + right).max().item() <= 1 + 1e-5 and (tall + down).max().item() <= 1 + 1e-5
    for side, place in ((broad, theta[:, 0, 2]), (tall, theta[:, 1, 2])):
        assert (place - side).min().item() < -0.95 and (place + side).max().item() > 0.95


def test_chunks_of_mixed_shapes_are_cut_one_by_one(loaded: Clip) -> None:
    random = np.random.default_rng(0)
    shapes = [(64, 64), (64, 100), (80, 64), (64, 100), (64, 64)]
    images = [random.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in shapes]
    where = draw_crops(5, 0.3, torch.Generator().manual_seed(1), torch.tensor([w / h for h, w in shapes]))
    together = crops(loaded, images, where)
    assert together.shape == (5, 3, 64, 64)
    for i, image in enumerate(images):
        alone = crop_at(loaded.normalise(image[None]), where[i : i + 1], 64)
        assert torch.equal(together[i], alone[0])


def test_crops_stay_in_the_range_of_the_image() -> None:
    images = torch.rand(50, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    crops = crop(images, 0.2)
    assert crops.shape == images.shape
    assert (
        images.min().item() - 1e-6 <= crops.min().item() and crops.max().item() <= images.max().item() + 1e-6
    )
