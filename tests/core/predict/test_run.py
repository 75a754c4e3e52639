"""Files to classes: the same answers as open_clip's own way, whatever the batches and threads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from mudg_core.encode.models import open_clip
from mudg_core.predict.model import NOT_FINITE, Model, Prediction, open_model, pixels_of, predict
from tests.support.exported import pictures


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return open_model(folder)


def scenery(file: Path, size: tuple[int, int], seed: int = 0) -> Path:
    """Something with edges, slopes and texture, as photos have them."""
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    image = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), dtype=np.float64)
    image = image + random.normal(0, 12, image.shape)
    image[size[1] // 3 : size[1] // 2, size[0] // 4 : size[0] // 3] = random.integers(0, 256, 3)
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(file, quality=92)
    return file


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "large.jpg", "tall.jpg", "wide.jpg", "small.jpg"])
def test_the_answer_is_that_of_open_clip(model: Model, folder: Path, tmp_path: Path, name: str) -> None:
    """With its own preprocessing; large JPEGs are decoded smaller, so theirs is only nearly the same."""
    sizes = {"large.jpg": (1200, 900), "tall.jpg": (150, 420), "wide.jpg": (333, 111), "small.jpg": (40, 30)}
    file = scenery(tmp_path / name, sizes.get(name, (200, 160)))
    network, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    with torch.inference_mode(), Image.open(file) as image:
        features = network.eval().encode_image(preprocess(image.convert("RGB"))[None], normalize=True)
        cosines = (features @ torch.from_numpy(model.texts).T)[0]
        shares = (model.temperature * cosines).softmax(dim=0)
    (found,) = predict(model, [file], top=3)
    near = 5e-3 if name == "large.jpg" else 1e-4
    order = [guess.label for guess in found.guesses]
    assert order == cosines.argsort(descending=True).tolist()
    assert [g.cosine for g in found.guesses] == pytest.approx(cosines[order].tolist(), abs=near)
    assert [g.probability for g in found.guesses] == pytest.approx(shares[order].tolist(), abs=near)


def test_a_large_jpeg_is_not_decoded_whole(model: Model, tmp_path: Path) -> None:
    file = scenery(tmp_path / "a.jpg", (1200, 900))
    halved = pixels_of(model.clip, file)
    with Image.open(file) as image:
        whole = model.clip.pixels(image)
    assert (halved != whole).any()
    assert np.abs(halved.astype(int) - whole).mean() < 2


def answers(model: Model, files: list[Path], **how: int) -> list[Prediction]:
    return list(predict(model, files, top=3, **how))  # type: ignore[arg-type]


@pytest.mark.parametrize(("batch", "threads"), [(1, 1), (2, 2), (5, 2), (100, 3)])
def test_batches_and_threads_do_not_matter(model: Model, tmp_path: Path, batch: int, threads: int) -> None:
    files = pictures(tmp_path) * 4
    wanted = answers(model, files, batch_size=100, threads=1)
    found = answers(model, files, batch_size=batch, threads=threads)
    assert [one.file for one in found] == files
    for one, two in zip(found, wanted, strict=True):
        assert [g.label for g in one.guesses] == [g.label for g in two.guesses]
        assert [g.cosine for g in one.guesses] == pytest.approx([g.cosine for g in two.guesses], abs=1e-6)
    assert len({one.guesses for one in wanted}) == 3


def test_a_bad_image_costs_that_image(model: Model, tmp_path: Path) -> None:
    good = pictures(tmp_path / "good")
    (tmp_path / "page.jpg").write_text("<html>")
    (tmp_path / "empty.png").write_bytes(b"")
    files = [tmp_path / "gone.jpg", good[0], tmp_path / "page.jpg", good[1], tmp_path / "empty.png"]
    found = answers(model, files, batch_size=2, threads=2)
    assert [one.error for one in found] == [
        "file: not there",
        "",
        "image: not an image (html)",
        "",
        "image: empty",
    ]
    assert [len(one.guesses) for one in found] == [0, 3, 0, 3, 0]
    assert answers(model, files[:1]) == [Prediction(files[0], error="file: not there")]
    assert answers(model, []) == []


def test_what_is_asked_for_is_what_comes(model: Model, tmp_path: Path) -> None:
    files = pictures(tmp_path)
    for top, told in ((1, 1), (2, 2), (1000, 3)):
        assert [len(one.guesses) for one in predict(model, files, top=top)] == [told] * 3
    shares = [g.probability for g in next(predict(model, files, top=3)).guesses]
    assert sum(shares) == pytest.approx(1, abs=1e-5) and shares == sorted(shares, reverse=True)


def test_a_model_that_breaks_down_is_told(model: Model, tmp_path: Path) -> None:
    broken = replace(model, texts=np.full_like(model.texts, np.nan))
    assert [one.error for one in predict(broken, pictures(tmp_path))] == [NOT_FINITE] * 3


def test_files_are_not_asked_for_far_ahead(model: Model, tmp_path: Path) -> None:
    """So that memory is that of a few batches, however many files there are."""
    (file, *_) = pictures(tmp_path)
    asked = itertools.count()

    def endless() -> Iterator[Path]:
        while next(asked) >= 0:
            yield file

    found = predict(model, endless(), batch_size=2, threads=2)
    assert [next(found).error for _ in range(10)] == [""] * 10
    assert next(asked) <= 2 * (5 + 4 * 2) + 2
    found.close()  # type: ignore[attr-defined]


def test_the_number_of_threads_is_put_back(model: Model, tmp_path: Path) -> None:
    torch.set_num_threads(2)
    try:
        list(predict(model, pictures(tmp_path), threads=1))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
