"""`mudg index …` from the first build to a takedown, on one store that tests copy before they change it.

One Prefect server and one Dask cluster serve all commands: starting them is most of the time of a small one.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from flows import build_index
from mudg_core.index import part
from mudg_core.index.recall import Point
from mudg_core.index.variants import VARIANTS
from mudg_core.index.version import promote
from mudg_core.settings import Settings, StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.storage.browse import artifacts
from tasks.coarse import assign_cells
from tasks.index import measure_recall, populate
from tasks.policy import Stage, Work
from tasks.run import Run
from tests.support.built import Built
from tests.support.places import Place

pytestmark = pytest.mark.timeout(1200)  # a machine may be busy

MORE = ("--set", "corpus.rows=900")  # two shards more


@pytest.fixture(scope="module")
def grown(first: Built, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Six shards: two more than `first`, in a copy of its store."""
    place = first.place.copy(tmp_path_factory.mktemp("grown"))
    return Built(place, place.run("index", "build", *MORE))


def test_a_build_says_what_was_tried_and_what_it_finds(first: Built) -> None:
    result = first.result
    assert set(result["tried"]) == set(VARIANTS) and result["variant"] in VARIANTS
    assert result["rows"] > 500 and result["cells"] == 8 and result["code"] == "flat"
    assert result["cached"] == 0 and result["computed"] == len(first.place.digests())
    assert set(result["recall"]) == {"text queries", "image queries"}
    configured = result["recall"]["text queries"][0]
    assert configured["probes"] == 16 and configured["recall_at_1"]["value"] == 1.0  # more than all 8 cells
    assert all(Path(plot).read_text().startswith("<?xml") for plot in result["plots"].values())
    assert result["note"] == "" and result["drift"] is None


def test_a_second_build_computes_nothing(first: Built, tmp_path: Path) -> None:
    place = first.place.copy(tmp_path)
    short = place.says("index", "build").splitlines()
    assert [line.partition(":")[0] for line in short] == ["built", "recall", "current", "next"]
    assert f"cells, {first.result['variant']} (0 computed, {first.result['computed']} cached)" in short[0]
    assert "100.0 % of captions" in short[1] and first.index in short[2] and "mudg search" in short[3]
    long = place.says("index", "build", "--verbose")
    assert long.splitlines()[:4] == short
    assert "variant tried" in long and "recall@10" in long and "recall.svg" in long
    assert place.digests() == first.place.digests()
    assert place.versions() == [(first.index, "current")]  # promoted once


@pytest.mark.parametrize("made_by", [assign_cells, populate, measure_recall], ids=lambda made: made.name)
def test_long_stages_tell_how_far_they_are_and_make_the_same(
    first: Built, made_by: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "TILE", 64)
    storage = {"url": f"file://{first.place.folder}/.mudg", "cache_dir": str(tmp_path / "cache")}
    settings = Settings().replace({"storage": storage})
    store, shares = ArtifactStore(settings.storage), list[float]()
    made = next(iter(artifacts(store, made_by.name)))
    for name, value in made.recipe.settings.items():
        if name != "inputs":
            area, _, field = name.partition(".")
            settings = settings.replace({area: {field: value}})
    (tmp_path / "out").mkdir()
    checkpoints = store.checkpoints(made.recipe)
    work = Work(store, settings, tmp_path / "out", checkpoints, progress=shares.append)
    made_by.make(made.recipe, work)
    assert len(set(shares)) > 2 and shares == sorted(shares) and shares[0] >= 0 and shares[-1] < 1
    for entry in made.files:
        if not entry.volatile:
            assert sha256((tmp_path / "out" / entry.name).read_bytes()).hexdigest() == entry.sha256


def test_versions_are_listed(first: Built) -> None:
    (only,) = first.place.run("index", "list")["versions"]
    assert (only["index"], only["state"], only["variant"]) == (
        first.index,
        "current",
        first.result["variant"],
    )
    assert only["rows"] == first.result["rows"]
    assert first.index in first.place.says("index", "list")


def test_nothing_is_listed_before_the_first_build(local: Place, tmp_path: Path) -> None:
    empty = replace(local, folder=tmp_path)
    assert empty.versions() == []
    assert "no version" in empty.says("index", "list")
    for command in (["rollback"], ["recall"], ["tune"], ["remove", "1"]):
        assert "mudg index build" in empty.run("index", *command, ends=3)["fix"]


def test_recall_rises_with_what_is_read(first: Built) -> None:
    measured = first.place.run("index", "recall", "--save", "x.svg")
    assert measured["index"] == first.index
    for kind in ("text queries", "image queries"):
        by_probes = [point for point in measured[kind] if point["mass"] == 1]
        assert [point["probes"] for point in by_probes] == [1, 2, 4, 8]
        for name in ("recall_at_1", "recall_at_10"):
            values = [point[name]["value"] for point in by_probes]
            assert all(less <= more for less, more in pairwise(values))
            assert values[-1] == 1.0  # all cells of a flat code: exact search
        assert all(less["read"] < more["read"] for less, more in pairwise(by_probes))
        assert all(point["qps"] is None or point["qps"] > 0 for point in measured[kind])
    ElementTree.parse(first.place.folder / "x.svg")


def test_tuning_finds_the_cheapest_settings_that_do(first: Built) -> None:
    tuned = first.place.run("index", "tune", "--recall", "0.9")
    assert tuned["tuning"]["recall_at_1"]["value"] >= 0.9
    assert tuned["flags"] == f"--set index.probes={tuned['probes']} --set index.mass={tuned['mass']:g}"
    assert tuned["report"]["probes"] == tuned["probes"] and tuned["tuning"]["share_read"] < 1
    all_of_it = first.place.run("index", "tune", "--recall", "1", "--at", "10")
    assert all_of_it["tuning"]["recall_at_10"]["value"] == 1.0
    assert all_of_it["tuning"]["read"] > tuned["tuning"]["read"]
    assert first.place.run("index", "tune", "--at", "5", ends=2)["error"] == "InputError"


def test_growing_computes_what_is_new_and_keeps_the_training(first: Built, grown: Built) -> None:
    made = grown.place.made_since(first.place.digests())
    each_shard = dict.fromkeys(("corpus-shard", "embedding-shard", "neighbors", "cells"), 2)
    assert made == each_shard | dict.fromkeys(("index-part", "index", "recall"), 1)
    assert grown.result["computed"] == made.total()
    assert grown.result["training_shards"] == 4 and grown.result["variant"] == first.result["variant"]
    assert grown.result["rows"] > 1.4 * first.result["rows"]
    assert "L_cross-modal" in grown.result["drift"]["words"]
    assert grown.place.versions() == [(grown.index, "current"), (first.index, "")]


def test_a_grown_index_equals_one_built_at_once(grown: Built, tmp_path: Path) -> None:
    """From the same embeddings, but with nothing of what was trained."""
    at_once = replace(grown.place, folder=tmp_path)
    for stage in ("corpus-shard", "embedding-shard"):
        kept = f".mudg/artifacts/{stage}"
        shutil.copytree(grown.place.folder / kept, tmp_path / kept)
    made = at_once.run("index", "build", *MORE, "--set", "index.training_shards=4")
    assert made["index"] == grown.index and made["cached"] == 12
    of_index = at_once.digests("index", "index-part")
    assert len(of_index) == 4  # three parts and the version
    assert grown.place.digests("index", "index-part").items() >= of_index.items()


def test_training_anew_when_asked(grown: Built, tmp_path: Path) -> None:
    place = grown.place.copy(tmp_path)
    again = place.run("index", "build", "--retrain", "--set", "index.variant=paired", *MORE)
    assert again["training_shards"] == 6 and again["drift"] is None and again["tried"] == {}
    assert place.versions()[0] == (again["index"], "current") != (grown.index, "current")
    kept = place.run("index", "build", "--set", "index.variant=paired", *MORE)
    assert (kept["computed"], kept["training_shards"]) == (0, 6)


def hits(place: Place, *flags: str) -> list[int]:
    found = place.run("search", "a photo of a cat", "-n", "3", *flags)
    return [hit["row"] for hit in found["hits"]]


def test_removed_rows_are_found_no_more(first: Built, tmp_path: Path) -> None:
    place = first.place.copy(tmp_path)
    gone, *others = hits(place)
    before = place.digests()
    removed = place.run("index", "remove", str(gone))
    assert removed["removed"] == 1 and removed["rows"] == first.result["rows"] - 1
    assert place.made_since(before) == {"index-part": 1, "index": 1, "recall": 1}
    now = hits(place)
    assert gone not in now and now[:2] == others
    assert removed["recall"]["text queries"][0]["recall_at_1"]["value"] == 1.0  # nobody expects it
    later = place.run("index", "build", *MORE)
    assert later["removed"] == 1 and gone not in hits(place)
    again = place.run("index", "remove", str(gone), str(others[0]), *MORE)
    assert again["removed"] == 2 and not {gone, others[0]} & set(hits(place))
    back = place.run("index", "rollback")
    assert back["current"] == later["index"] and f"mudg index remove {others[0]}" in back["note"]


@pytest.mark.parametrize("variant", ["paired", "spilled"])
def test_rows_leave_the_version_as_it_is_whatever_the_settings_of_the_command(
    first: Built, tmp_path: Path, variant: str
) -> None:
    """Somebody whose shell lacks the model and the sizes of the index must not replace it by another."""
    place = first.place.copy(tmp_path)
    own = ("--set", f"index.variant={variant}")
    whole = place.run("index", "build", *own)
    gone, other = hits(place)[:2]
    before = place.digests()
    strange = (
        "encode.model=demo:student",
        "index.cells=4",
        "index.spill=0.3",
        "index.seed=5",
        "index.code=sq8",
    )
    strange += ("corpus.rows=900", "corpus.dedup=true", "index.rows_per_part=1000")
    flags = [word for change in strange for word in ("--set", change)]
    removed = place.run("index", "remove", str(gone), *flags)
    assert place.made_since(before) == {"index-part": 1, "index": 1, "recall": 1}
    assert (removed["rows"], removed["cells"], removed["variant"]) == (whole["rows"] - 1, 8, variant)
    assert place.run("index", "remove", str(gone), *flags)["index"] == removed["index"]
    told = place.run("takedown", "--row", str(other), *flags)
    assert place.made_since(before)["index-part"] == 2 and "embedding-shard" not in place.made_since(before)
    built = place.run("index", "build", *own)
    assert built["index"] == told["index"] == place.current() and built["removed"] == 2
    assert not {gone, other} & set(hits(place))


def test_rows_that_are_removed_while_a_build_runs_stay_out(
    first: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build has looked for removed rows before, and is about to promote what it made."""
    place = first.place.copy(tmp_path)
    gone = hits(place)[0]
    removed = place.run("index", "remove", str(gone))["index"]
    place.run("index", "rollback")
    store = ArtifactStore(StorageSettings(url=f"file://{tmp_path}/.mudg", cache_dir=f"{tmp_path}/cache"))
    check, checked = build_index.check, []

    def meanwhile(run: Run, index: ArtifactRef, point: Point) -> None:
        check(run, index, point)
        checked.append(index)
        if len(checked) == 1:
            promote(store, store.resolve(removed))

    monkeypatch.setattr(build_index, "check", meanwhile)
    built = place.run("index", "build", *MORE)
    assert len(checked) == 2 and built["index"] == str(checked[1]) == place.current()
    assert built["removed"] == 1 and gone not in hits(place, *MORE)


@pytest.mark.parametrize("rows", [["-1"], []])
def test_rows_to_remove_are_numbers_from_zero_up(first: Built, rows: list[str]) -> None:
    before = first.place.digests()
    first.place.says("index", "remove", "--", *rows, ends=2)
    assert first.place.digests() == before


def test_a_row_that_is_not_there_cannot_be_removed(first: Built) -> None:
    assert "[99999999]" in first.place.run("index", "remove", "99999999", ends=2)["what"]


def test_rolled_back_stays_so_until_somebody_promotes(first: Built, grown: Built, tmp_path: Path) -> None:
    place = grown.place.copy(tmp_path)
    assert place.run("index", "rollback") == {"current": first.index, "note": ""}
    assert place.versions()[:2] == [(first.index, "current"), (grown.index, "withdrawn")]
    scheduled = place.run("index", "build", *MORE)
    assert (scheduled["index"], scheduled["computed"]) == (grown.index, 0)
    assert "rolled back" in scheduled["note"] and f"mudg index promote {grown.index}" in scheduled["note"]
    assert scheduled["note"] in place.says("index", "build", *MORE)
    assert place.current() == first.index
    assert place.run("index", "promote", grown.index)["current"] == grown.index
    assert place.current() == grown.index
    assert place.run("index", "build", *MORE)["note"] == ""
    place.run("index", "rollback")
    assert place.run("index", "rollback", ends=3)["error"] == "MissingArtifactError"


def test_a_version_that_somebody_promotes_stays_so(first: Built, grown: Built, tmp_path: Path) -> None:
    place = grown.place.copy(tmp_path)
    place.run("index", "promote", first.index)
    assert place.versions()[:2] == [(first.index, "current"), (grown.index, "withdrawn")]
    scheduled = place.run("index", "build", *MORE)
    assert "rolled back" in scheduled["note"] and place.current() == first.index


def test_the_gate_leaves_the_old_version_current(first: Built, tmp_path: Path) -> None:
    place = first.place.copy(tmp_path)
    strict = ("--set", "index.required_recall=1.0", "--set", "index.probes=1")
    other = ("--set", "index.seed=1", "--set", "index.variant=paired")
    refused = place.run("index", "build", *strict, *other, ends=3)
    assert refused["error"] == "GateError" and "old version stays current" in refused["what"]
    assert "index.probes" in refused["fix"] and "--force" in refused["fix"]
    assert place.versions() == [(first.index, "current")]
    new = refused["where"]
    assert new.startswith("index/") and new != first.index
    assert place.run("index", "promote", new, *strict, ends=3)["error"] == "GateError"
    assert place.run("index", "promote", new, "--force", *strict)["current"] == new
    place.run("index", "promote", first.index)
    code = min(place.digests("code"))
    assert "is not an index" in place.run("index", "promote", code, ends=2)["what"]


def test_pairs_are_found_through_a_bootstrapped_index(first: Built, tmp_path: Path) -> None:
    place = first.place.copy(tmp_path)
    few = ("--set", "index.pairs=bootstrap", "--set", "index.bootstrap_probes=0.5")
    built = place.run("index", "build", *few, "--set", "index.variant=paired")
    assert {"neighbors", "neighbors-guided"} <= set(built["seconds"])
    assert built["variant"] == "paired"
    assert built["recall"]["text queries"][0]["recall_at_1"]["value"] == 1.0


def test_four_bits_and_a_second_look_find_what_is_there(first: Built, tmp_path: Path) -> None:
    place = first.place.copy(tmp_path)
    coded = ("--set", "index.code=sq4", "--set", "index.rerank=30")
    before = place.digests()
    built = place.run("index", "build", *coded)
    assert place.made_since(before) == {"code": 1, "index-part": 2, "index": 1, "recall": 1}
    assert built["code"] == "sq4"
    everything = built["recall"]["text queries"][0]
    assert everything["recall_at_1"]["value"] >= 0.99
    quick = place.run("index", "recall", "--set", "index.rerank=0")["text queries"]
    at_all = next(point for point in quick if (point["probes"], point["mass"]) == (8, 1))
    assert at_all["recall_at_10"]["value"] < everything["recall_at_10"]["value"]


def test_f51_queries_of_another_model_are_refused(first: Built, tmp_path: Path) -> None:
    place = first.place.copy(tmp_path)
    before = place.digests()
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: a\nclasses: [cat, dog]\nsettings: {encode: {model: 'demo:student'}}\n")
    for command in (["target", "run", str(spec)], ["search", "a cat", "--set", "encode.model=demo:student"]):
        refused = place.run(*command, ends=3)
        assert refused["error"] == "DataError" and "another CLIP model" in refused["what"]
        assert "encode.model" in refused["fix"]
    assert place.digests() == before


def test_an_image_that_is_taken_down_leaves_the_index_and_does_not_come_back(
    first: Built, tmp_path: Path
) -> None:
    """By its row; then also where a version from before, or a build with new shards, would bring it back."""
    place = first.place.copy(tmp_path)
    found = place.run("search", "a photo of a cat", "-n", "3")["hits"]
    gone, others = found[0], [hit["row"] for hit in found[1:]]
    dry = place.run("takedown", "--url", gone["url"], "--dry-run")
    assert gone["row"] in dry["rows"] and place.current() == first.index
    told = place.run("takedown", "--row", str(gone["row"]))
    assert told["index"] == place.current() != first.index and gone["row"] in told["rows"]
    assert gone["row"] not in hits(place) and hits(place)[:2] == others
    back = place.run("index", "promote", first.index, "--force")
    assert gone["row"] not in hits(place)  # the version has it, the list does not let it through
    assert back["note"] == ""
    later = place.run("index", "build", *MORE)
    assert later["removed"] >= 1 and gone["row"] not in hits(place, *MORE)
    assert place.run("takedown", "--row", str(gone["row"]))["rows"] == []
