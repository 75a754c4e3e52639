"""Exports hold every image once, under the right class, and nothing that strangers wrote can do harm."""

from __future__ import annotations

import csv
import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from mudg_core.corpus.decode import Refused, decode, suffix_of
from mudg_core.corpus.shards import read_shard
from mudg_core.dataset.export import FORMATS, Source, export
from mudg_core.dataset.export.card import plain
from mudg_core.dataset.export.formats import cell, write_huggingface, write_webdataset
from mudg_core.dataset.training_set import TAR
from mudg_core.errors import DataError, InputError
from mudg_core.storage import ArtifactStore
from tests.support.training_sets import (
    CAPTIONS,
    CLASSES,
    IMAGES,
    SUFFIXES,
    labels,
    make_dataset,
    picture,
    store_at,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ArtifactStore:
    return store_at(tmp_path_factory.mktemp("datasets"))


@pytest.fixture(scope="module")
def source(store: ArtifactStore) -> Source:
    return Source.open(store, make_dataset(store, seed=3), ["animals"])


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def lines_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_imagefolder_has_every_image_in_the_folder_of_its_class(source: Source, tmp_path: Path) -> None:
    export(source, tmp_path / "out", "imagefolder")
    out = tmp_path / "out"
    names = json.loads((out / "classes.json").read_text())
    assert list(names.values()) == list(CLASSES)
    assert [int(folder[:4]) for folder in names] == list(range(len(CLASSES)))
    images = sorted(out.glob("*/*"))
    assert len(images) == IMAGES
    for path in images:
        number = int(path.stem) - 40
        assert path.read_bytes() == picture(number)
        assert path.suffix == f".{SUFFIXES[number % 5]}"
        assert names[path.parent.name] == CLASSES[labels()[number]]
    folders = sorted(path.name for path in out.iterdir() if path.is_dir())
    assert folders == list(names)[:-1]  # readers refuse an empty folder


def test_a_spreadsheet_finds_no_formula_and_one_line_an_image(source: Source, tmp_path: Path) -> None:
    export(source, tmp_path / "out", "imagefolder")
    file = tmp_path / "out" / "provenance.csv"
    assert file.read_text().count("\n") == IMAGES + 1
    lines = lines_of(file)
    assert [int(line["row"]) for line in lines] == list(range(40, 40 + IMAGES))
    for number, line in enumerate(lines):
        assert (tmp_path / "out" / line["file"]).read_bytes() == picture(number)
        assert int(line["label"]) == labels()[number]
        assert line["query"] == f"a photo of a {CLASSES[labels()[number]]}."
        assert float(line["cosine"]) == 0.3
        assert not any(value.startswith(("=", "+", "@")) for value in line.values())
    assert lines[0]["caption"] == f"'{CAPTIONS[0]}" and lines[1]["caption"] == "two lines, and a"


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r\n=1", "\x00=1", "\u200b=1", "＝1"])
def test_words_that_would_be_a_formula_are_quoted(text: str) -> None:
    made = cell(text)
    assert isinstance(made, str) and made.startswith("'") and "\n" not in made


def test_numbers_stay_numbers() -> None:
    assert [cell(-0.25), cell(7), cell(None), cell(float("nan"))] == [-0.25, 7, "", ""]


def test_huggingface_says_what_its_columns_are(source: Source, tmp_path: Path) -> None:
    export(source, tmp_path / "out", "huggingface")
    (file,) = (tmp_path / "out" / "data").iterdir()
    assert file.name == "train-00000-of-00001.parquet"
    table = pq.read_table(file)
    told = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert told["label"] == {"_type": "ClassLabel", "names": list(CLASSES)}
    assert told["image"] == {"_type": "Image"} and list(told) == table.column_names
    for name, kind in told.items():
        if kind["_type"] == "Value":
            expected = {"float": "float32"}.get(str(table.schema.field(name).type))
            assert kind["dtype"] == (expected or str(table.schema.field(name).type))
    for number, line in enumerate(table.to_pylist()):
        assert line["image"] == {
            "bytes": picture(number),
            "path": f"{40 + number:09d}.{SUFFIXES[number % 5]}",
        }
        assert line["label"] == labels()[number] and line["caption"] == CAPTIONS[(40 + number) % 5]


def test_large_exports_are_cut_into_files(source: Source, tmp_path: Path) -> None:
    write_huggingface(source, tmp_path, max_bytes=1)
    names = [path.name for path in sorted((tmp_path / "data").iterdir())]
    assert names == [f"train-{n:05d}-of-{IMAGES:05d}.parquet" for n in range(IMAGES)]
    write_webdataset(source, tmp_path, max_bytes=2 * len(picture(1)))
    tars = sorted(tmp_path.glob("*.tar"))
    assert 1 < len(tars) < IMAGES
    keys = [int(sample.key) for tar in tars for sample in read_shard(tar)]
    assert keys == list(range(40, 40 + IMAGES))
    named = {line["file"] for line in lines_of(tmp_path / "provenance.csv")}
    assert named == {tar.name for tar in tars}


def members(tar: Path) -> dict[str, bytes]:
    with tarfile.open(tar) as opened:
        return {m.name: opened.extractfile(m).read() for m in opened}  # type: ignore[union-attr]


def test_webdataset_pairs_image_and_label(source: Source, tmp_path: Path) -> None:
    export(source, tmp_path / "out", "webdataset")
    inside = members(tmp_path / "out" / "train-00000.tar")
    for number, label in enumerate(labels()):
        assert inside[f"{40 + number:09d}.jpg"] == picture(number)
        assert int(inside[f"{40 + number:09d}.cls"]) == label


def test_the_artifact_itself_has_labels_and_our_reader_reads_it(source: Source) -> None:
    inside = members(source.tar)
    assert source.tar.name == TAR and len(inside) == 4 * IMAGES
    assert [int(inside[f"{40 + n:09d}.cls"]) for n in range(IMAGES)] == labels()
    samples = list(read_shard(source.tar))
    assert [sample.error_message for sample in samples] == [None] * IMAGES
    assert [sample.image for sample in samples] == [picture(n) for n in range(IMAGES)]


@pytest.mark.parametrize("to", FORMATS)
def test_every_export_says_where_it_came_from(source: Source, tmp_path: Path, to: str) -> None:
    told = export(source, tmp_path / "out", to)
    assert json.loads((tmp_path / "out" / "mudg.json").read_text()) == told
    assert told["seed"] == 3 and told["targets"] == ["animals"] and told["images"] == IMAGES
    assert told["settings"] == {"dataset.min_cosine": 0.25, "dataset.per_class": 4}
    text = (tmp_path / "out" / "README.md").read_text()
    assert told["digest"] in text and plain(told["index"]) in text
    assert "pseudo-labels" in text and "belong to their owners" in text
    assert "<script" not in text.partition("# animals")[2]


def test_the_card_survives_any_class_name(source: Source, tmp_path: Path) -> None:
    export(source, tmp_path / "out", "huggingface")
    _, head, body = (tmp_path / "out" / "README.md").read_text().split("---\n", 2)
    told = yaml.safe_load(head)
    assert told["mudg"]["classes"] == list(CLASSES) and told["mudg"]["images"] == IMAGES
    assert told["configs"][0]["data_files"] == [{"split": "train", "path": "data/train-*.parquet"}]
    rows = [line for line in body.splitlines() if line.startswith("| ")]
    assert all(line.replace("\\|", "").count("|") in (3, 4) for line in rows)


@pytest.mark.parametrize("to", FORMATS)
def test_the_same_dataset_gives_the_same_bytes(source: Source, tmp_path: Path, to: str) -> None:
    for name in "ab":
        export(source, tmp_path / name, to)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert all(
        (tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes()
        for f in files_of(tmp_path / "a")
    )


def test_a_folder_with_something_in_it_is_left_alone(source: Source, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    export(source, out, "webdataset")  # empty is fine
    before = files_of(out)
    with pytest.raises(InputError, match="not empty"):
        export(source, out, "imagefolder")
    assert files_of(out) == before
    export(source, out, "imagefolder", force=True)
    assert not (out / "train-00000.tar").exists() and (out / "classes.json").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_force_replaces_exports_only(source: Source, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="earlier exports only"):
        export(source, tmp_path, "imagefolder", force=True)
    with pytest.raises(InputError, match="a file is"):
        export(source, tmp_path / "thesis.tex", "imagefolder", force=True)
    assert files_of(tmp_path) == ["thesis.tex"]


def test_an_export_that_fails_leaves_the_old_one(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(source, tmp_path / "out", "webdataset")
    before = files_of(tmp_path)

    def fail(source: Source, out: Path) -> None:
        (out / "half").write_text("x")
        raise KeyboardInterrupt

    monkeypatch.setitem(FORMATS, "imagefolder", fail)
    with pytest.raises(KeyboardInterrupt):
        export(source, tmp_path / "out", "imagefolder", force=True)
    assert files_of(tmp_path) == before


def test_a_torn_dataset_is_refused(source: Source, tmp_path: Path) -> None:
    tar = tmp_path / TAR
    whole = source.tar.read_bytes()
    tar.write_bytes(whole[: len(whole) // 2])
    torn: dict[str, Any] = {**vars(source), "tar": tar}
    torn = {name: torn[name] for name in ("tar", "provenance", "classes", "prompts", "lineage")}
    with pytest.raises(DataError, match="do not fit"):
        export(Source(**torn), tmp_path / "out", "imagefolder")
    assert not (tmp_path / "out").exists()


def test_only_datasets_are_exported(store: ArtifactStore) -> None:
    ref = make_dataset(store)
    queries = store.manifest(ref).recipe.parents["queries"]
    with pytest.raises(InputError, match="is no dataset"):
        Source.open(store, queries)  # type: ignore[arg-type]


def test_suffixes_follow_the_content() -> None:
    for number, suffix in enumerate(SUFFIXES):
        assert suffix_of(picture(number)) == suffix
        decode(picture(number))
    with pytest.raises(Refused):
        suffix_of(b"<html>")
