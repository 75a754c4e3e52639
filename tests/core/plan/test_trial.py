"""The trial behind the time of embedding: the real stage, on any model that has a build."""

from __future__ import annotations

import pytest

from mudg_core.encode.models import blank_clip, load_clip, open_clip
from mudg_core.plan import probe


def test_a_trial_embeds_as_many_rows_as_it_has_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def seconds(clip: object, side: int, batch: int, rows: int) -> float:
        taken.append(rows)
        return 0.01 * rows

    monkeypatch.setattr(probe, "_embed_seconds", seconds)
    assert probe.embed_rate("demo:student", 64, 32) == pytest.approx(100)
    assert taken == [1, 1, 150]


def test_the_whole_stage_is_what_is_timed() -> None:
    assert probe._embed_seconds(load_clip("demo:student"), 100, 4, 9) > 0


def test_nothing_is_downloaded_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> str:
        raise AssertionError("a download")

    monkeypatch.setattr(open_clip, "download_pretrained", offline)
    assert blank_clip("ViT-S-32-alt/nothing-there").image_size == 224
