"""`mudg gc`, `mudg lineage` and `mudg takedown`, through the commands a user types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from flows.collect_garbage import collect_garbage
from mudg.cli.app import app
from mudg.cli.output import age
from mudg.cli.store import read_list
from mudg_core.corpus.takedowns import read_takedowns
from mudg_core.dataset.takedowns import mark_new_takedowns
from mudg_core.encode.shard import METADATA
from mudg_core.errors import InputError
from mudg_core.index.version import ONE, REMOVED, promote
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe, build_info
from tests.support.training_sets import make, make_dataset, store_at


def mudg(folder: Path, *words: str) -> Result:
    places = [f"storage.url=file://{folder}/store", f"storage.cache_dir={folder}/cache"]
    return CliRunner().invoke(app, [*words, *(flag for place in places for flag in ("--set", place))])


def answer(result: Result) -> Any:
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture
def old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    """A dataset, and something that nobody needs, both made a hundred days ago."""
    store = store_at(tmp_path)
    long_ago = (datetime.now(UTC) - timedelta(days=100)).isoformat(timespec="seconds")
    with monkeypatch.context() as patch:
        patch.setattr(build_info, "now", lambda: long_ago)
        make_dataset(store)
        make(store, "cells", {}, {"x": {}})
    return store


def test_gc_says_what_it_would_do_and_then_does_it(old_store: ArtifactStore, tmp_path: Path) -> None:
    files = sorted(old_store.objects.list("artifacts/"))
    told = answer(mudg(tmp_path, "gc", "--dry-run", "--json"))
    assert (
        told["dry_run"] and told["sums"]["condemn"]["count"] == 1 and told["condemn"][0].startswith("cells/")
    )
    kinds = {(line["kind"], line["action"], line["why"]) for line in told["lines"]}
    assert ("dataset", "keep", "within 180 days") in kinds
    assert ("index", "keep", "a kept artifact was made from it") in kinds
    text = mudg(tmp_path, "gc", "--dry-run").stdout
    assert "would be marked for deletion" in text and "within 180 days" in text and "kept: 4" in text
    assert (
        sorted(old_store.objects.list("gc/")) == [] and sorted(old_store.objects.list("artifacts/")) == files
    )
    assert "marked for deletion now: 1" in mudg(tmp_path, "gc").stdout
    assert "marked for deletion before: 1" in mudg(tmp_path, "gc").stdout
    assert sorted(old_store.objects.list("artifacts/")) == files


def test_gc_takes_an_age(old_store: ArtifactStore, tmp_path: Path) -> None:
    told = answer(mudg(tmp_path, "gc", "--older-than", "99d", "--dry-run", "--json"))
    assert told["sums"]["keep"]["count"] == 0 and told["sums"]["condemn"]["count"] == 5
    kept = answer(mudg(tmp_path, "gc", "--older-than", "101d", "--dry-run", "--json"))
    assert kept["sums"]["condemn"]["count"] == 0
    wrong = mudg(tmp_path, "gc", "--older-than", "soon", "--json")
    assert wrong.exit_code == 2 and answer(wrong)["error"] == "InputError"


def test_an_empty_store_has_nothing_to_collect(tmp_path: Path) -> None:
    assert "empty" in mudg(tmp_path, "gc").stdout


@pytest.mark.parametrize(
    ("text", "hours"), [("30d", 720), ("2", 48), ("1.5 h", 1.5), ("90min", 1.5), ("0d", 0)]
)
def test_ages(text: str, hours: float) -> None:
    assert age(text) == timedelta(hours=hours)
    for bad in ("", "-1d", "1w", "d", "1e9"):
        with pytest.raises(InputError):
            age(bad)


def test_the_flow_tells_sums(old_store: ArtifactStore) -> None:
    settings = Settings().replace({"storage": old_store.settings.model_dump()})
    sums = collect_garbage(settings).sums()
    assert sums["condemn"]["count"] == 1 and sums["delete"]["count"] == 0
    assert collect_garbage.name == "collect-garbage"


def family(store: ArtifactStore) -> dict[str, ArtifactRef]:
    """Seven shards into one index, a diamond, and a model that was made from it."""
    shards = [make(store, "embedding-shard", {"inputs": {"n": n}}, {"x": {}}, {"rows": 3}) for n in range(7)]
    pairs = make(store, "pairs", {"index.seed": 5}, {"x": {}}, shard=shards[0])
    recipe = Recipe(stage="index", algorithm=1, parents={"shards": tuple(shards), "pairs": pairs})
    index = store.build(recipe, _one_file)
    hostile = {"inputs": {"classes": ["[bold]x[/bold]", "a\nb"]}}
    model = make(store, "model", hostile, {"x": {}}, {"images": 9}, index=index)
    return {"shard": shards[0], "pairs": pairs, "index": index, "model": model}


def _one_file(folder: Path) -> Facts:
    (folder / "x").write_text("x")
    return Facts()


def test_lineage_is_told_back_to_the_corpus(tmp_path: Path) -> None:
    made = family(store_at(tmp_path))
    text = mudg(tmp_path, "lineage", str(made["model"])).stdout
    lines = text.splitlines()
    assert (
        lines[0].startswith(f"{made['model']}  2") and "9 images" in lines[0] and "[bold]x[/bold]" in lines[0]
    )
    assert "\n".join(lines).count("embedding-shard/") == 4  # three of seven, and that of the pairs
    assert "and 4 more embedding-shard" in text and "(above)" in text and "index.seed 5" in text
    told = answer(mudg(tmp_path, "lineage", str(made["model"]), "--json"))
    assert len(told["lineage"]) == 10 and told["lineage"][0]["artifact"] == str(made["model"])
    assert "children" not in told
    pairs = next(one for one in told["lineage"] if one["stage"] == "pairs")
    assert pairs["parents"] == {"shard": [str(made["shard"])]} and pairs["settings"] == {"index.seed": 5}
    shard = next(one for one in told["lineage"] if one["artifact"] == str(made["shard"]))
    assert shard["extent"] == "3 rows" and shard["bytes"] == 2 and shard["settings"] == {"n": 0}


def test_lineage_tells_what_was_made_from_it(tmp_path: Path) -> None:
    made = family(store_at(tmp_path))
    told = answer(mudg(tmp_path, "lineage", str(made["shard"]), "--children", "--json"))
    assert [one["stage"] for one in told["lineage"]] == ["embedding-shard"]
    assert {one["artifact"] for one in told["children"]} == {
        str(made[n]) for n in ("pairs", "index", "model")
    }
    text = mudg(tmp_path, "lineage", str(made["shard"]), "--children").stdout
    assert "made from it" in text and str(made["model"]) in text
    assert "nothing was made from it" in mudg(tmp_path, "lineage", str(made["model"]), "--children").stdout


def test_lineage_as_a_picture(tmp_path: Path) -> None:
    made = family(store_at(tmp_path))
    path = tmp_path / "x.svg"
    told = answer(
        mudg(tmp_path, "lineage", str(made["pairs"]), "--children", "--picture", str(path), "--json")
    )
    assert told["picture"] == str(path)
    words = " ".join(
        "".join(one.itertext()) for one in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    )
    assert "finetune" in words and "embed" in words and str(made["pairs"]) in words
    assert "index" in words and "Lineage of 4 artifacts in 4 stages" in words
    refused = mudg(tmp_path, "lineage", str(made["pairs"]), "--picture", str(tmp_path / "no/x.svg"), "--json")
    assert refused.exit_code == 2 and "picture" in answer(refused)["what"]


def test_lineage_with_an_ancestor_that_is_gone(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    made = family(store)
    store.quarantine(made["shard"], "test")
    assert "not in the store any more" in mudg(tmp_path, "lineage", str(made["index"])).stdout


def test_a_takedown_marks_what_has_it_and_keeps_it_away(tmp_path: Path) -> None:
    """Without an index: training sets, models, exports and the list."""
    store = store_at(tmp_path)
    dataset = make_dataset(store)
    model = make(store, "model", {"inputs": {}}, {"x": {}}, dataset=dataset)
    given = make(store, "classifier", {"inputs": {}}, {"x": {}}, model=model, dataset=dataset)
    clean = make(store, "model", {"inputs": {"without": [41]}}, {"x": {}}, dataset=dataset)
    make(store, "classifier", {"inputs": {}}, {"x": {}}, model=clean, dataset=dataset)
    url = "https://x.example/41.jpg?a=1&b=2"
    names = {f"{ref.stage}/{ref.key}": 1 for ref in (dataset, model, given)}
    before = sorted(store.objects.list("artifacts/"))
    dry = answer(mudg(tmp_path, "takedown", "--url", url, "--dry-run", "--json"))
    assert dry["touched"] == names and dry["rows"] == [] and dry["index"] is None
    assert sorted(store.objects.list("artifacts/")) == before
    said = mudg(tmp_path, "takedown", "--url", url).stdout
    assert str(model) in said and "marked: trained on it" in said and "later builds leave it out" in said
    assert "trained on an image since taken down" in mudg(tmp_path, "show", str(model)).stdout
    told = answer(mudg(tmp_path, "lineage", str(model), "--json"))
    assert told["notes"] == {
        str(model): "trained on an image since taken down",
        str(dataset): "holds an image since taken down",
    }
    out = tmp_path / "out"
    exported = mudg(tmp_path, "dataset", "export", str(dataset), str(out), "--to", "imagefolder")
    assert "1 left out: taken down" in exported.stdout
    assert answer(mudg(tmp_path, "takedown", "--url", url, "--json"))["touched"] == names  # asked twice


COPIES = pa.table(
    {"row": [7, 41], "url": ["https://y.example/me.jpg", "https://x.example/41.jpg"], "sha256": ["aa"] * 2}
)


def make_embeddings(
    store: ArtifactStore, stage: str, images: pa.Table, **parents: ArtifactRef
) -> ArtifactRef:
    def write(folder: Path) -> Facts:
        (folder / METADATA).parent.mkdir()
        pq.write_table(images, folder / METADATA)
        return Facts({"rows": len(images)})

    return store.build(Recipe(stage=stage, algorithm=1, parents=dict(parents)), write)


def make_index(
    store: ArtifactStore, images: pa.Table, removed: Sequence[int] = (), screened: pa.Table | None = None
) -> ArtifactRef:
    """A current version over these images, of which only what it is made from is told truly."""

    def leave_out(folder: Path) -> Facts:
        np.save(folder / REMOVED, np.array(removed, np.int64))
        return Facts({"variant": "paired", "training_shards": 1})

    one: dict[str, Any] = {stage: make(store, stage, {}, {"x": {}}) for stage in ONE}
    shard = make(store, "shard", {}, {"x": {}})
    many = {stage: (make(store, stage, {}, {"x": {}}),) for stage in ("parts", "neighbors")}
    embedded = make_embeddings(store, "embedding-shard", images, shard=shard)
    if screened is not None:
        embedded = make_embeddings(store, "screened-shard", screened, shard=shard, embedding=embedded)
    parents = one | many | {"embeddings": (embedded,)}
    index = store.build(
        Recipe(stage="index", algorithm=9, settings={"removed": list(removed)}, parents=parents), leave_out
    )
    promote(store, index)
    return index


@pytest.mark.parametrize("removed", [(), (7,)])
def test_a_copy_under_another_address_is_taken_down_too(tmp_path: Path, removed: tuple[int, ...]) -> None:
    """By the bytes that the index knows of, also of a row that it leaves out already. Training sets have an
    image under the address of its lowest row, whichever was asked for."""
    store = store_at(tmp_path)
    plain = make_dataset(store)

    def write(name: str, table: pa.Table, folder: Path) -> Facts:
        pq.write_table(table, folder / name)
        return Facts()

    def copy(folder: Path) -> Facts:
        for name, path in store.files(plain).items():
            (folder / name).write_bytes(path.read_bytes())
        return Facts()

    found = store.build(
        Recipe(stage="candidates", algorithm=1), partial(write, "images.parquet", COPIES.slice(1))
    )
    dataset = store.build(Recipe(stage="dataset", algorithm=2, parents={"found": found}), copy)
    make_index(store, COPIES, removed)
    told = answer(mudg(tmp_path, "takedown", "--url", "https://y.example/me.jpg", "--dry-run", "--json"))
    assert told["rows"] == sorted({7, 41} - set(removed))
    assert told["touched"] == {f"dataset/{dataset.key}": 1}


def test_a_copy_is_taken_down_by_the_address_of_one_that_was_screened_out(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    make_index(store, COPIES, screened=COPIES.slice(1))
    told = answer(mudg(tmp_path, "takedown", "--url", "https://y.example/me.jpg", "--dry-run", "--json"))
    assert told["rows"] == [41]


def test_what_is_made_during_a_takedown_is_marked_too(tmp_path: Path) -> None:
    """Both ways: by the command if it comes last, and by the run if that does."""
    store = store_at(tmp_path)
    dataset = make_dataset(store)
    with mark_new_takedowns(store):
        mudg(tmp_path, "takedown", "--url", "https://x.example/41.jpg?a=1&b=2")
        late = make(store, "model", {"inputs": {}}, {"x": {}}, dataset=dataset)
        assert f"model/{late.key}" not in read_takedowns(store).marked
    assert read_takedowns(store).marked[f"model/{late.key}"] == 1
    before = read_takedowns(store).ref
    with mark_new_takedowns(store):
        make(store, "model", {"inputs": {"other": 1}}, {"x": {}}, dataset=dataset)
    assert read_takedowns(store).ref == before, "a list that did not change costs one look"


def test_images_to_take_down_are_named_in_a_file_too(tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("\ufeffhttps://x.example/a b.jpg\r\n\n 17 \nhttps://x.example/c.jpg\n")
    asked, rows = read_list(["https://x.example/c.jpg"], [3], listed)
    assert asked == ["https://x.example/c.jpg", "https://x.example/a b.jpg"] and rows == [3, 17]
    listed.write_text("1" * 5000)
    huge = str(2**63)
    for words in (
        [],
        ["--row", "-1"],
        ["--file", str(tmp_path / "none")],
        ["--row", "5"],
        ["--file", str(listed)],
        ["--row", huge],
    ):
        refused = mudg(tmp_path, "takedown", *words, "--json")
        assert refused.exit_code == 2 and answer(refused)["error"] == "InputError"


def test_the_earlier_name_of_a_takedown_still_works_and_says_the_new_one(tmp_path: Path) -> None:
    make_dataset(store_at(tmp_path))
    done = mudg(tmp_path, "forget", "--url", "https://x.example/41.jpg?a=1&b=2", "--json")
    assert len(answer(done)["touched"]) == 1 and "is now called `mudg takedown`" in done.stderr
    assert "forget" not in CliRunner().invoke(app, ["--help"]).stdout
