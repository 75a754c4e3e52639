"""The prediction benchmark's own arithmetic, and that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from benchmarks.train import predict
from benchmarks.train.predict import Round, Seconds


def test_the_faster_bare_loop_counts() -> None:
    one = Round(Seconds(wall=10, cpu=16), (Seconds(wall=9, cpu=12), Seconds(wall=8, cpu=14)))
    assert one.ratio == 0.8 and one.cpu_ratio == 0.75


def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "HOME", tmp_path)
    monkeypatch.setattr(predict, "PHOTO", (300, 200))
    found = predict.measure(images=9, photos=2, rounds=1, model="demo:student")
    assert found["predict_over_raw"] > 0 and found["predict_over_raw_cpu_12_megapixels"] > 0
    assert len(list((tmp_path / "images").iterdir())) == 9


def test_pictures_have_the_bytes_of_photos(tmp_path: Path) -> None:
    (file,) = predict.drawn(tmp_path, predict.WEB, 1)
    with Image.open(file) as image:
        assert image.size == predict.WEB
    assert 60_000 < file.stat().st_size < 250_000
