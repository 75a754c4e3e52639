"""Published embeddings: taken over row by row, and refused if another model made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.sources.files import Entry, SourceFiles
from mudg_core.corpus.sources.shard import SourceFile, SourceShard
from mudg_core.encode.models import Clip
from mudg_core.encode.published import take_over
from mudg_core.encode.shard import REFUSED, EmbeddingShard
from mudg_core.errors import DataError
from mudg_core.settings import StorageSettings

CAPTIONS = [f"a photo of thing {number}" for number in range(12)]


@pytest.fixture
def folder(loaded: Clip, tmp_path: Path) -> Path:
    """Two partitions, with the features of captions and, for images, anything."""
    folder = tmp_path / "source"
    for name in ("img_emb", "text_emb", "metadata"):
        (folder / name).mkdir(parents=True)
    texts = loaded.encode_texts(CAPTIONS)
    for part, (first, last) in enumerate([(0, 7), (7, 12)]):
        images = np.random.default_rng(part).normal(size=(last - first, loaded.dim))
        np.save(folder / "img_emb" / f"img_emb_{part}.npy", images.astype(np.float16))
        np.save(
            folder / "text_emb" / f"text_emb_{part}.npy", 3 * texts[first:last]
        )  # not of unit length, float32
        table = {"image_path": [f"k{row}" for row in range(first, last)], "caption": CAPTIONS[first:last]}
        table |= {"url": [f"https://x.example/{row}" for row in range(first, last)]}
        pq.write_table(pa.table(table), folder / "metadata" / f"metadata_{part}.parquet")
    return folder


def source(folder: Path) -> SourceFiles:
    return SourceFiles(str(folder), StorageSettings(url=f"file://{folder}", cache_dir=str(folder)))


def added(folder: Path) -> SourceShard:
    """As somebody adds it who trusts in what it says of itself."""
    files, parts = [], {f"img_emb/img_emb_{part}.npy": rows for part, rows in ((0, 7), (1, 5))}
    for name, rows in parts.items():
        entry = Entry(name, (folder / name).stat().st_size)
        known = source(folder).fingerprint(entry)
        files.append(SourceFile(name=name, size=entry.size, rows=rows, fingerprint=known))
    return SourceShard(kind="embeddings", url=f"file://{folder}", first_row=100, files=tuple(files))


def take(folder: Path, clip: Clip, out: Path, shard: SourceShard | None = None) -> Any:
    out.mkdir()
    return take_over(source(folder), shard or added(folder), clip, out.parent, out)


def test_a_partition_that_changed_after_it_was_added_is_refused_by_name(
    folder: Path, loaded: Clip, tmp_path: Path
) -> None:
    shard, file = added(folder), folder / "img_emb" / "img_emb_1.npy"
    np.save(file, np.load(file)[::-1])
    with pytest.raises(DataError, match=r"img_emb_1\.npy has changed since it was added"):
        take(folder, loaded, tmp_path / "out", shard)


def test_rows_are_kept_in_order_at_unit_length(folder: Path, loaded: Clip, tmp_path: Path) -> None:
    done = take(folder, loaded, tmp_path / "out")
    assert (done.rows, done.refused) == (12, {})
    shard = EmbeddingShard.open(tmp_path / "out")
    assert shard.rows.tolist() == list(range(100, 112))
    assert shard.images.dtype == shard.texts.dtype == np.float16
    assert np.linalg.norm(shard.images.astype(np.float32), axis=1) == pytest.approx(np.ones(12), abs=2e-3)
    assert shard.texts == pytest.approx(loaded.encode_texts(CAPTIONS), abs=2e-3)
    for number, line in enumerate(shard.metadata().to_pylist()):
        assert (line["key"], line["url"]) == (f"k{number}", f"https://x.example/{number}")
        assert (line["caption"], line["caption_length"]) == (CAPTIONS[number], len(CAPTIONS[number]))
        assert line["duplicate_of"] == line["row"] == 100 + number
        cosine = float(shard.images[number].astype(np.float32) @ shard.texts[number].astype(np.float32))
        assert line["cosine"] == pytest.approx(cosine, abs=5e-3)


def test_f42_f43_bad_rows_are_set_aside_by_name(folder: Path, loaded: Clip, tmp_path: Path) -> None:
    file = folder / "img_emb" / "img_emb_1.npy"
    images = np.load(file)
    images[1], images[3], images[4, 0] = 0, np.nan, np.inf
    np.save(file, images)
    done = take(folder, loaded, tmp_path / "out")
    assert (done.rows, done.refused) == (9, {"embedding: not finite or zero norm": 3})
    assert [line["row"] for line in pq.read_table(tmp_path / "out" / REFUSED).to_pylist()] == [108, 110, 111]
    shard = EmbeddingShard.open(tmp_path / "out")
    assert shard.rows.tolist() == [*range(100, 108), 109]
    assert shard.metadata().column("key").to_pylist()[-1] == "k9"


def test_captions_are_encoded_where_there_are_no_texts(folder: Path, loaded: Clip, tmp_path: Path) -> None:
    for file in (folder / "text_emb").iterdir():
        file.unlink()
    take(folder, loaded, tmp_path / "out")
    assert EmbeddingShard.open(tmp_path / "out").texts == pytest.approx(
        loaded.encode_texts(CAPTIONS), abs=2e-3
    )


def test_f51_another_models_embeddings_are_refused(folder: Path, loaded: Clip, tmp_path: Path) -> None:
    file = folder / "text_emb" / "text_emb_0.npy"
    np.save(file, np.load(file)[:, ::-1].copy())
    with pytest.raises(DataError, match="were not made by") as caught:
        take(folder, loaded, tmp_path / "out")
    assert "img_emb_0.npy" in caught.value.where


@pytest.mark.parametrize("harm", ["dim", "texts", "metadata", "dtype", "object"])
def test_f44_f45_f46_f72_partitions_that_do_not_fit(
    harm: str, folder: Path, loaded: Clip, tmp_path: Path
) -> None:
    images, texts = (folder / name / f"{name}_1.npy" for name in ("img_emb", "text_emb"))
    if harm == "dim":
        for file in (images, texts):
            np.save(file, np.load(file)[:, :8])
    elif harm == "texts":
        np.save(texts, np.load(texts)[:-1])
    elif harm == "metadata":
        table = folder / "metadata" / "metadata_1.parquet"
        pq.write_table(pq.read_table(table).slice(1), table)
    elif harm == "dtype":
        np.save(images, np.load(images).astype(np.int8))
    else:
        np.save(images, np.array([{"a": 1}] * 5, dtype=object), allow_pickle=True)
    with pytest.raises(DataError) as caught:
        take(folder, loaded, tmp_path / "out")
    assert "img_emb_1.npy" in caught.value.where and caught.value.fix


def test_neither_texts_nor_captions(folder: Path, loaded: Clip, tmp_path: Path) -> None:
    for file in (folder / "text_emb").iterdir():
        file.unlink()
    for file in (folder / "metadata").iterdir():
        pq.write_table(pq.read_table(file).drop_columns(["caption"]), file)
    with pytest.raises(DataError, match="neither text embeddings nor captions"):
        take(folder, loaded, tmp_path / "out")
