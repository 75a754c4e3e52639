"""What a run leaves for people."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flows.results import publish
from mudg_core.settings import Settings, load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tasks.report import REPORT


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    storage = {"url": f"file://{tmp_path}/store", "cache_dir": str(tmp_path / "cache")}
    return load_settings(overrides={"storage": storage}, environ={})


def report(store: ArtifactStore, text: str) -> ArtifactRef:
    def make(folder: Path) -> Facts:
        (folder / REPORT).write_text(text)
        return Facts()

    return store.build(Recipe(stage="report", algorithm=1, settings={"text": text}), make)


def test_a_run_that_dies_while_it_publishes_leaves_the_old_page(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(settings.storage)
    page = publish(store, report(store, "old"), "demo", settings)

    def cut_short(source: Path, target: Path) -> None:
        target.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", cut_short)
    with pytest.raises(KeyboardInterrupt):
        publish(store, report(store, "new"), "demo", settings)
    assert page.read_text() == "old"
    monkeypatch.undo()
    assert publish(store, report(store, "new"), "demo", settings).read_text() == "new"
    assert [path.name for path in page.parent.iterdir()] == ["demo.html"]
