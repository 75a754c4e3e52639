"""Training sets with images that were taken down: readers leave them out; models are marked."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.takedowns import Takedowns, remember
from mudg_core.dataset.export import FORMATS, Source, export
from mudg_core.dataset.fetch_filter_refill import CHOSEN, DEAD, SPARE, UNLIKE, UNREADABLE
from mudg_core.dataset.takedowns import takedowns_in_dataset, touched
from mudg_core.dataset.training_set import PROVENANCE, read_training_set
from mudg_core.errors import DataError
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tests.support.training_sets import IMAGES, labels, make, make_dataset, make_report, store_at

URL = "https://x.example/{}.jpg?a=1&b=2"
CLIP: Any = SimpleNamespace(pixels=lambda image: np.asarray(image.convert("RGB"))[:1, :1])


def taken_down(*rows: int) -> Takedowns:
    return Takedowns.of(pa.table({"row": pa.array([], pa.int64())}), [URL.format(row) for row in rows])


def test_rows_of_a_training_set_by_their_addresses(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    ref = make_dataset(store)
    assert takedowns_in_dataset(store, ref, taken_down(39, 41, 44, 99)) == [
        41,
        44,
    ]  # 39 is a dead link: never taken
    assert takedowns_in_dataset(store, ref, Takedowns()) == []


def test_rows_of_a_training_set_by_bytes_that_only_its_candidates_know(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    plain = make_dataset(store)

    def candidates(folder: Path) -> Facts:
        pq.write_table(pa.table({"row": [41, 77], "sha256": ["aa", "aa"]}), folder / "images.parquet")
        return Facts()

    found = store.build(Recipe(stage="candidates", algorithm=1), candidates)

    def copy(folder: Path) -> Facts:
        for name, path in store.files(plain).items():
            (folder / name).write_bytes(path.read_bytes())
        return Facts()

    ref = store.build(Recipe(stage="dataset", algorithm=2, parents={"found": found}), copy)
    assert takedowns_in_dataset(store, ref, Takedowns(contents=frozenset(["aa"]))) == [41]


def test_training_goes_without_them(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    folder = store.folder(make_dataset(store))
    pixels, all_labels = read_training_set(folder, CLIP)
    fewer, kept = read_training_set(folder, CLIP, [41, 43])
    assert len(pixels) == IMAGES and all_labels.tolist() == labels()
    assert kept.tolist() == [label for row, label in enumerate(labels(), 40) if row not in (41, 43)]
    assert np.array_equal(fewer, np.delete(pixels, [1, 3], axis=0))
    rows = pq.read_table(folder / PROVENANCE).column("row").to_pylist()
    with pytest.raises(DataError, match="all images"):
        read_training_set(folder, CLIP, rows)


@pytest.mark.parametrize("to", FORMATS)
def test_exports_go_without_them(tmp_path: Path, to: str) -> None:
    store = store_at(tmp_path)
    ref = make_dataset(store)
    remember(store, taken_down(41, 44))
    source = Source.open(store, ref)
    rows = [item.row for item in source.items()]
    assert len(rows) == source.size == sum(source.per_class()) == IMAGES - 2 and not {41, 44} & set(rows)
    told = export(source, tmp_path / "out", to)
    assert told["images"] == IMAGES - 2 and told["forgotten"] == 2
    assert json.loads((tmp_path / "out/mudg.json").read_text())["forgotten"] == 2


def model(store: ArtifactStore, dataset: ArtifactRef, **inputs: Any) -> ArtifactRef:
    return make(store, "model", {"inputs": {"seed": 0, **inputs}}, {"x": {}}, dataset=dataset)


def test_what_learned_from_them_is_told(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    dataset, other = make_dataset(store), make_dataset(store, images=2, seed=1)
    trained, clean = model(store, dataset), model(store, dataset, without=[44, 45])
    half, apart = model(store, dataset, without=[44]), model(store, other)
    report, silent = make_report(store, [dataset], ["a"]), make_report(store, [other], ["b"])
    found = touched(store, taken_down(44, 45))
    expected = {dataset: 2, trained: 2, half: 1, report: 2}
    assert found == {ref.place: count for ref, count in expected.items()}
    assert not {ref.place for ref in (clean, apart, silent, other)} & found.keys()
    assert touched(store, Takedowns()) == {}


def copy_of(store: ArtifactStore, ref: ArtifactRef, stage: str, **outcomes: list[str]) -> ArtifactRef:
    """The files of a training set once more, under another stage or with other outcomes."""

    def copy(folder: Path) -> Facts:
        for name, path in store.files(ref).items():
            (folder / name).write_bytes(path.read_bytes())
        if told := outcomes.get("outcome"):
            table = pq.read_table(folder / PROVENANCE)
            place = table.column_names.index("outcome")
            pq.write_table(table.set_column(place, "outcome", pa.array(told)), folder / PROVENANCE)
        return Facts()

    return store.build(Recipe(stage=stage, algorithm=7, settings={"of": str(ref), **outcomes}), copy)


def test_a_report_may_show_what_was_tried_and_refused(tmp_path: Path) -> None:
    """Row 40 is the second of the provenance, after a dead link. What nobody has tried is not shown."""
    store = store_at(tmp_path)
    outcomes = [DEAD, UNLIKE, SPARE, UNREADABLE] + [CHOSEN] * (IMAGES - 3)
    dataset = copy_of(store, make_dataset(store), "dataset", outcome=outcomes)
    report = make_report(store, [dataset], ["a"])
    assert touched(store, taken_down(40)) == {report.place: 1, make_dataset(store).place: 1}
    assert touched(store, taken_down(40, 41, 42))[report.place] == 2
    assert report.place not in touched(store, taken_down(41))
    assert dataset.place not in touched(store, taken_down(40, 41, 42))


def test_images_that_were_held_out_are_told_too(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    held_out = copy_of(store, make_dataset(store), "held-out")
    found = touched(store, taken_down(41, 44))
    assert found[held_out.place] == 2
    assert Takedowns(marked=found).note(held_out.place) == "holds 2 images since taken down"
