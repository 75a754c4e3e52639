"""Embedding: rows that belong together stay together, and a bad sample costs only itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from mudg_core.corpus.decode import Limits, decode
from mudg_core.corpus.shards import ShardSample, encode_jpeg
from mudg_core.encode.embed import AHEAD, Reading, ahead, chunks, embed_shard
from mudg_core.encode.models import Clip
from mudg_core.encode.shard import REFUSED, EmbeddingShard
from mudg_core.encode.writer import GROUPED

Float32 = np.ndarray[Any, np.dtype[np.float32]]


def sample(number: int, image: bytes | None = None, caption: str = "", **facts: Any) -> ShardSample:
    pixels = np.random.default_rng(number).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels).resize((64, 64))
    return ShardSample(
        key=f"{number:09d}",
        url=f"http://x/{number}",
        caption=caption or f"a photo of {number}",
        image=encode_jpeg(picture) if image is None else image,
        **facts,
    )


def located(samples: Sequence[ShardSample]) -> Iterator[tuple[str, ShardSample]]:
    return ((f"{place // 3}.tar", each) for place, each in enumerate(samples))


class Eye:
    """Stands in for a model: an image's feature is (its red, 1), a text's is (its length, 1), unless it
    says else."""

    dim, batch_size = 2, 4
    said: ClassVar = {101: (np.nan, 1.0), 102: (np.inf, 1.0), 103: (0.0, 0.0)}

    def pixels(self, image: Image.Image) -> Any:
        return np.array(image)

    def tokens(self, texts: Sequence[str]) -> torch.Tensor:
        words = {"nan": 101, "inf": 102, "zero": 103}
        return torch.tensor([[words.get(text.split()[-1], len(text))] for text in texts])

    def encode_images(self, pixels: Any, batch_size: int) -> Float32:
        return np.stack([pixels[:, 0, 0, 0].astype(np.float32), np.ones(len(pixels), np.float32)], axis=1)

    def encode_tokens(self, tokens: torch.Tensor, batch_size: int) -> Float32:
        return np.array([self.said.get(int(t), (float(t), 1.0)) for t in tokens], np.float32)


def embed(samples: Sequence[ShardSample], clip: Any, out: Path, first_row: int = 10, **how: Any) -> Any:
    out.mkdir(exist_ok=True)
    return embed_shard(located(samples), clip, first_row, out, **how)


def refused(folder: Path) -> list[tuple[int, str]]:
    return [(line["row"], line["reason"]) for line in pq.read_table(folder / REFUSED).to_pylist()]


@pytest.mark.parametrize("batch_size", [1, 2, 5, 100, None])
@pytest.mark.parametrize("threads", [0, 3])
def test_rows_and_metadata_are_aligned(
    batch_size: int | None, threads: int, loaded: Clip, tmp_path: Path
) -> None:
    """Every row is embedded once more alone, from its own metadata."""
    samples = [sample(number) for number in range(7)]
    done = embed(samples, loaded, tmp_path, 1000, batch_size=batch_size, reading=Reading(threads))
    assert (done.rows, done.refused) == (7, {})
    shard = EmbeddingShard.open(tmp_path)
    assert shard.images.dtype == shard.texts.dtype == np.float16
    assert shard.rows.tolist() == list(range(1000, 1007))
    assert shard.metadata().schema.equals(GROUPED)
    for line, facts in enumerate(shard.metadata().to_pylist()):
        own = samples[line]
        image = loaded.encode_images(loaded.pixels(decode(own.image or b""))[None])[0]
        text = loaded.encode_texts([own.caption])[0]
        assert shard.images[line] == pytest.approx(image, abs=1e-3)
        assert shard.texts[line] == pytest.approx(text, abs=1e-3)
        stored = shard.images[line].astype(np.float64) @ shard.texts[line].astype(np.float64)
        assert facts["cosine"] == np.float32(stored) == pytest.approx(float(image @ text), abs=1e-3)
        assert {name: facts[name] for name in ("row", "key", "url", "caption", "sha256", "file")} == {
            "row": 1000 + line,
            "key": own.key,
            "url": own.url,
            "caption": own.caption,
            "sha256": own.sha256,
            "file": f"{line // 3}.tar",
        }
        assert (facts["width"], facts["height"], facts["caption_length"]) == (64, 64, len(own.caption))


def test_batches_and_threads_do_not_decide_the_bytes(tmp_path: Path) -> None:
    samples = [sample(number) for number in range(30)]
    folders = []
    for number, (size, threads) in enumerate([(1, 0), (7, 2), (64, 1)]):
        folders.append(tmp_path / str(number))
        embed(samples, Eye(), folders[-1], batch_size=size, reading=Reading(threads))
    names = [path.relative_to(folders[0]) for path in folders[0].rglob("*") if path.is_file()]
    assert len(names) == 4
    for name in names:
        assert len({(folder / name).read_bytes() for folder in folders}) == 1, name


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_a_broken_image_costs_only_its_sample(batch_size: int, tmp_path: Path) -> None:
    whole = sample(0).image or b""
    dead = ShardSample(key="x", url="u", caption="dead", error_message="HTTP 404")
    samples = [
        sample(1),
        sample(2, b"garbage"),
        sample(3, whole[:300]),
        dead,
        replace(dead, error_message=None),
    ]
    done = embed([*samples, sample(5)], Eye(), tmp_path, batch_size=batch_size)
    assert done.rows == 2 and sum(done.refused.values()) == 4
    shard = EmbeddingShard.open(tmp_path)
    assert shard.rows.tolist() == [10, 15]
    assert [line["url"] for line in shard.metadata().to_pylist()] == ["http://x/1", "http://x/5"]
    assert refused(tmp_path) == [
        (11, "image: not an image"),
        (12, "image: truncated"),
        (13, "HTTP 404"),
        (14, "image: none"),
    ]


def test_f42_f43_embeddings_that_say_nothing_are_set_aside_by_name(tmp_path: Path) -> None:
    captions = ["a nan", "good", "an inf", "a zero", "finest"]
    samples = [sample(number, caption=caption) for number, caption in enumerate(captions)]
    done = embed(samples, Eye(), tmp_path, 0, batch_size=2)
    assert done.rows == 2
    assert done.refused == {"embedding: not finite": 2, "embedding: zero norm": 1}
    assert [row for row, _ in refused(tmp_path)] == [0, 2, 3]
    shard = EmbeddingShard.open(tmp_path)
    assert shard.rows.tolist() == [1, 4]
    assert shard.texts[:, 0].tolist() == [4.0, 6.0]


def test_f47_nothing_usable_is_an_empty_shard_that_says_why(tmp_path: Path) -> None:
    for number, samples in enumerate(([], [sample(1, b"x"), sample(2, caption="a nan")])):
        folder = tmp_path / str(number)
        done = embed(samples, Eye(), folder)
        assert done.rows == 0 and sum(done.refused.values()) == len(samples)
        assert pq.read_metadata(folder / REFUSED).num_rows == len(samples)


def test_samples_beyond_the_rows_of_a_shard_are_refused(tmp_path: Path) -> None:
    """A tar with more samples than it announced must not take the row numbers of the next."""
    done = embed([sample(number) for number in range(5)], Eye(), tmp_path, rows=3)
    assert done.rows == 3 and EmbeddingShard.open(tmp_path).rows.tolist() == [10, 11, 12]
    assert refused(tmp_path) == [(row, "shard: more samples than were announced") for row in (13, 14)]


@pytest.mark.parametrize("keep", [False, True])
def test_owners_who_opted_out(keep: bool, tmp_path: Path) -> None:
    samples = [sample(0), sample(1, opt_out=True), sample(2)]
    done = embed(samples, Eye(), tmp_path, reading=Reading(keep_opted_out=keep))
    flags = EmbeddingShard.open(tmp_path).metadata().column("opt_out").to_pylist()
    assert (flags, done.refused) == (
        ([False, True, False], {}) if keep else ([False, False], {"opted out": 1})
    )


def test_limits_reach_the_decoder(tmp_path: Path) -> None:
    done = embed([sample(0)], Eye(), tmp_path, reading=Reading(limits=Limits(max_pixels=1000)))
    assert done.refused == {"image: too many pixels": 1}


def test_original_sizes_are_told_where_known(tmp_path: Path) -> None:
    embed([sample(0, original_width=900, original_height=600)], Eye(), tmp_path)
    line = EmbeddingShard.open(tmp_path).metadata().to_pylist()[0]
    assert (line["width"], line["height"]) == (900, 600)


def test_copies_are_told_as_the_first_of_them(loaded: Clip, tmp_path: Path) -> None:
    copies = [sample(1), sample(2), replace(sample(1), key="again"), sample(3)]
    done = embed(copies, loaded, tmp_path)
    assert EmbeddingShard.open(tmp_path).metadata().column("duplicate_of").to_pylist() == [10, 11, 10, 13]
    assert done.duplicates == 1


def test_only_so_much_is_prepared_ahead() -> None:
    """A slow model must not fill the memory with decoded images."""
    done = threading.Semaphore(0)
    started: list[int] = []

    def prepare(item: int) -> int:
        started.append(item)
        done.release()
        return -item

    results = ahead(prepare, range(100), threads=2)
    assert next(results) == 0
    assert len(started) <= 2 * AHEAD
    assert list(results) == [-item for item in range(1, 100)]


def test_an_error_in_a_thread_is_the_callers() -> None:
    def fail(item: int) -> int:
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        list(ahead(fail, range(50), threads=2))


def test_chunks() -> None:
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(chunks([], 2)) == []
