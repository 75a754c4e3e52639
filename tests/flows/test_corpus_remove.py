"""`mudg corpus remove` and `corpus add --replace` say what follows, and do it only then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from mudg.cli.app import app
from mudg_core.corpus.sources import registry, shard
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore, Facts, Recipe
from tests.core.corpus.sources import making

runner = CliRunner()


def run(folder: Path, *words: str) -> str:
    at = ["--set", f"storage.url=file://{folder}/store", "--set", f"storage.cache_dir={folder}/cache"]
    shown = runner.invoke(app, ["corpus", *words, *at])
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def made(scratch: Path) -> Facts:
    (scratch / "x").touch()
    return Facts({})


def store_in(folder: Path) -> ArtifactStore:
    return ArtifactStore(StorageSettings(url=f"file://{folder}/store", cache_dir=f"{folder}/cache"))


def test_f83_a_source_is_removed_after_it_was_said_what_follows(tmp_path: Path) -> None:
    source = making.tars(tmp_path / "source", 2)
    run(tmp_path, "add", str(source))
    store = store_in(tmp_path)
    before = registry.refs(store)
    store.build(Recipe(stage="dataset", algorithm=1, parents={"shards": tuple(before)}), made)
    shutil.rmtree(source)
    told = json.loads(run(tmp_path, "remove", str(source), "--json"))
    assert told["made_with_it"] == {"dataset": 1} and told["indexed"] is False and told["done"] is False
    shown = run(tmp_path, "remove", str(source))
    assert "1 dataset made with it" in shown and "run again with --yes" in shown
    assert registry.refs(store) == before
    assert "removed" in run(tmp_path, "remove", str(source), "--yes")
    assert not registry.refs(store) and "nothing was added yet" in run(tmp_path, "status")


def test_f83_a_source_that_changed_is_replaced(tmp_path: Path) -> None:
    source = making.tars(tmp_path / "source", 1)
    run(tmp_path, "add", str(source))
    store = store_in(tmp_path)
    before = registry.refs(store)
    making.tars(source, 1, each=30)
    assert "run again with --yes" in run(tmp_path, "add", str(source), "--replace")
    assert registry.refs(store) == before
    run(tmp_path, "add", str(source), "--replace", "--yes")
    (ref,) = registry.refs(store)
    assert (shard.load(store, ref).first_row, shard.load(store, ref).rows) == (20, 30)
