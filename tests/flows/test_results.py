"""What a run leaves for people."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mudg.cli.demo import accuracy_text
from mudg_core.settings import Settings, load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tasks.report import REPORT
from tasks.results import publish


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


@pytest.mark.parametrize(
    ("seeds", "mean", "said"), [(1, "42.3", "One seed"), (3, "42.3 ± 2.0", "over 3 seeds")]
)
def test_one_seed_is_printed_as_one_seed(seeds: int, mean: str, said: str) -> None:
    """A deviation of 0.0 would look as if other seeds came to the same."""
    scores = {"mean": 42.29, "std": 2.0 if seeds > 1 else 0.0, "domains": {"sketch": 40.0}}
    text = accuracy_text({"mudg": scores, "seeds": seeds, "computed": 1, "cached": 0, "report": "r.html"})
    assert mean in text and said in text and "± 0.0" not in text
    assert ("±" in text) == (seeds > 1)


def test_a_target_without_evaluation_has_no_table() -> None:
    text = accuracy_text({"seeds": 0, "computed": 1, "cached": 2, "report": "r.html"})
    assert text == "1 computed, 2 cached\nreport: r.html\n"
