"""Measuring this machine, and the trial of embedding: the real stage, on any model that has a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.encode.models import blank_clip, load_clip, open_clip
from mudg_core.errors import StorageError
from mudg_core.plan import probe
from mudg_core.plan.probe import disk_rate


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


def test_this_machine_is_measured_and_nothing_stays(tmp_path: Path) -> None:
    """Bounds that a watch and a supercomputer keep: a wrong unit is off by a thousand."""
    found = probe.probe(tmp_path / "not" / "there" / "yet")
    assert 0.1 < found.sgemm == found.half < 1e5
    assert 0.1 < found.memory_bandwidth < 1e4
    assert 1e-3 < found.storage_bandwidth < 1e3
    assert 0.1 < found.memory < 1e5
    assert found.name == "this-machine" and not list(tmp_path.iterdir())


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be measured") as caught:
        disk_rate(tmp_path / "none", 1 << 20)
    assert caught.value.where == str(tmp_path / "none")
