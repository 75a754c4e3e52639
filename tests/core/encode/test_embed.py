"""Embedded shards: rows that belong together stay together."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mudg_core.corpus.shards import ShardSample, encode_jpeg
from mudg_core.encode.embed import (
    IMAGES,
    METADATA,
    TEXTS,
    EmbeddingShard,
    embed_shard,
    gather_images,
    gather_metadata,
)
from mudg_core.encode.models import Clip
from mudg_core.errors import DataError

Float32 = np.ndarray[Any, np.dtype[np.float32]]


def sample(number: int, image: bytes | None = None) -> ShardSample:
    pixels = np.random.default_rng(number).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels).resize((64, 64))
    data = encode_jpeg(picture) if image is None else image
    return ShardSample(
        key=f"{number:09d}", url=f"http://x/{number}", caption=f"a photo of {number}", image=data
    )


class Eye:
    """Stands in for a model: an image's feature is (its red, 1), a text's is (its number, 1)."""

    def pixels(self, image: Image.Image) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return np.array(image.convert("RGB"))

    def encode_images(self, pixels: np.ndarray[Any, np.dtype[np.uint8]], batch_size: int) -> Float32:
        return np.stack([pixels[:, 0, 0, 0].astype(np.float32), np.ones(len(pixels), np.float32)], axis=1)

    def encode_texts(self, texts: Sequence[str], batch_size: int) -> Float32:
        values = {"nan": (np.nan, 1.0), "inf": (np.inf, 1.0), "zero": (0.0, 0.0)}
        return np.array([values.get(text.split()[-1], (float(len(text)), 1.0)) for text in texts], np.float32)


def shard_at(folder: Path, rows: Sequence[int], dim: int = 4) -> EmbeddingShard:
    """A shard whose image feature i is full of its row number."""
    for name in (IMAGES, TEXTS):
        (folder / name).parent.mkdir(parents=True)
        np.save(folder / name, np.repeat(np.array(rows, np.float16)[:, None], dim, axis=1))
    (folder / METADATA).parent.mkdir()
    table = pa.table({"row": np.array(rows, np.int64), "caption": [f"c{row}" for row in rows]})
    pq.write_table(table, folder / METADATA)
    return EmbeddingShard.open(folder)


@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
def test_rows_and_metadata_are_aligned(batch_size: int, loaded: Clip, tmp_path: Path) -> None:
    samples = [sample(number) for number in range(5)]
    done = embed_shard(iter(samples), loaded, 1000, batch_size, tmp_path)
    assert (done.rows, done.refused) == (5, {})
    shard = EmbeddingShard.open(tmp_path)
    assert shard.images.dtype == shard.texts.dtype == np.float16
    assert shard.rows.tolist() == [1000, 1001, 1002, 1003, 1004]
    for line, facts in enumerate(shard.metadata().to_pylist()):
        own = samples[line]
        assert (facts["row"], facts["key"], facts["url"]) == (1000 + line, own.key, own.url)
        assert (facts["caption"], facts["sha256"]) == (own.caption, own.sha256)
        with Image.open(io.BytesIO(own.image or b"")) as image:
            alone = loaded.encode_images(loaded.pixels(image)[None])
        assert shard.images[line] == pytest.approx(alone[0], abs=1e-3)
        assert shard.texts[line] == pytest.approx(loaded.encode_texts([own.caption])[0], abs=1e-3)


def broken_png() -> bytes:
    stored = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)).save(
        stored, "PNG"
    )
    data = bytearray(stored.getvalue())
    data[33:37] = (100).to_bytes(4)  # Pillow raises SyntaxError for this one
    return bytes(data)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_a_broken_image_costs_only_its_sample(batch_size: int, tmp_path: Path) -> None:
    whole = sample(0).image or b""
    dead = ShardSample(key="x", url="u", caption="dead")
    samples = [
        sample(1),
        sample(2, b"garbage"),
        sample(3, whole[:300]),
        dead,
        sample(4, broken_png()),
        sample(5),
    ]
    done = embed_shard(samples, Eye(), 10, batch_size, tmp_path)  # type: ignore[arg-type]
    assert done.rows == 2 and sum(done.refused.values()) == 4
    shard = EmbeddingShard.open(tmp_path)
    assert shard.rows.tolist() == [10, 15]
    assert [line["url"] for line in shard.metadata().to_pylist()] == ["http://x/1", "http://x/5"]


def test_f42_f43_embeddings_that_say_nothing_are_set_aside_and_counted(tmp_path: Path) -> None:
    captions = ["a nan", "good", "an inf", "a zero", "finest"]
    samples = [
        ShardSample(key=str(n), url=f"u{n}", caption=caption, image=sample(n).image)
        for n, caption in enumerate(captions)
    ]
    done = embed_shard(samples, Eye(), 0, 2, tmp_path)  # type: ignore[arg-type]
    assert done.rows == 2
    assert done.refused == {"embedding not finite": 2, "embedding of norm zero": 1}
    shard = EmbeddingShard.open(tmp_path)
    assert shard.rows.tolist() == [1, 4]
    assert shard.texts[:, 0].tolist() == [4.0, 6.0]


def test_f47_nothing_usable(tmp_path: Path) -> None:
    for samples in ([], [sample(1, b"x")]):
        with pytest.raises(DataError, match="no usable sample"):
            embed_shard(samples, Eye(), 0, 2, tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("harm", ["images", "texts", "metadata", "dim"])
def test_f46_misaligned_files(harm: str, tmp_path: Path) -> None:
    shard_at(tmp_path, [1, 2, 3])
    if harm == "metadata":
        pq.write_table(pa.table({"row": np.arange(2)}), tmp_path / METADATA)
    else:
        shape = (3, 5) if harm == "dim" else (2, 4)
        np.save(tmp_path / (TEXTS if harm == "texts" else IMAGES), np.zeros(shape, np.float16))
    with pytest.raises(DataError, match="misaligned") as caught:
        EmbeddingShard.open(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_f72_object_array_is_refused(tmp_path: Path) -> None:
    shard_at(tmp_path, [1, 2, 3])
    np.save(tmp_path / IMAGES, np.array([{"a": 1}, 2, 3], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read") as caught:
        EmbeddingShard.open(tmp_path)
    assert caught.value.where == str(tmp_path)


@pytest.mark.parametrize("name", [IMAGES, TEXTS, METADATA])
@pytest.mark.parametrize("content", [b"", b"garbage" * 50, None])
def test_unreadable_files_are_data_errors(name: str, content: bytes | None, tmp_path: Path) -> None:
    shard_at(tmp_path, [1, 2, 3])
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        EmbeddingShard.open(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_gathering_keeps_the_order_asked_for(tmp_path: Path) -> None:
    shards = [
        shard_at(tmp_path / "a", [0, 1, 3]),
        shard_at(tmp_path / "b", [10, 12]),
        shard_at(tmp_path / "c", [20]),
    ]
    rows = np.array([12, 0, 20, 3, 12, 1, 10])
    features = gather_images(shards, rows)
    assert features.dtype == np.float32
    assert features.tolist() == [[float(row)] * 4 for row in rows]
    lines = gather_metadata(shards, rows).to_pylist()
    assert [line["row"] for line in lines] == rows.tolist()
    assert [line["caption"] for line in lines] == [f"c{row}" for row in rows]
    assert [line["shard"] for line in lines] == [1, 0, 2, 0, 1, 0, 1]


@pytest.mark.parametrize("row", [2, -1, 11, 99])
def test_rows_in_no_shard(row: int, tmp_path: Path) -> None:
    shards = [shard_at(tmp_path / "a", [0, 1, 3]), shard_at(tmp_path / "b", [10, 12])]
    with pytest.raises(DataError, match=rf"rows \[{row}\] are in no shard"):
        gather_images(shards, np.array([0, row, 12]))
    with pytest.raises(DataError, match="1 rows are in no shard"):
        gather_metadata(shards, np.array([0, row, 12]))
    with pytest.raises(DataError, match="in no shard"):
        gather_metadata(shards, np.array([row]))
