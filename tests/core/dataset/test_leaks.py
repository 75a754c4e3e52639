"""Evaluation images among candidates: planted copies are found, and the demo world has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from mudg_core.corpus.demo.targets import TARGETS, evaluation_images
from mudg_core.corpus.demo.world import DemoWorld, demo_samples
from mudg_core.corpus.shards import ShardSample, encode_jpeg
from mudg_core.dataset import leaks
from mudg_core.dataset.leaks import (
    COPY,
    LOOKALIKE,
    SAME_FILE,
    Pictures,
    candidate_pictures,
    evaluation_pictures,
    find_leaks,
    warn_of_leaks,
    without_rows,
)
from mudg_core.encode.embed import embed_shard
from mudg_core.encode.models import Clip, load_clip
from mudg_core.encode.shard import EmbeddingShard, gather_images

ROWS, PLANTED = 300, 40


def cropped(image: Image.Image) -> Image.Image:
    edge = image.width * 0.01
    box = (edge, edge, image.width - edge, image.height - edge)
    return image.resize(image.size, Image.Resampling.BICUBIC, box=box)


EDITS: dict[str, Callable[[Image.Image], bytes]] = {
    "exact": encode_jpeg,
    "saved again": lambda image: encode_jpeg(image, 70),
    "smaller": lambda image: encode_jpeg(image.resize((58, 58))),
    "cropped": lambda image: encode_jpeg(cropped(image)),
}


@pytest.fixture(scope="module")
def clip() -> Clip:
    return load_clip("demo:index")


@pytest.fixture(scope="module")
def drawn() -> list[Image.Image]:
    every = [image for image, _ in evaluation_images(TARGETS[0], "watercolor", 2, 7)]
    return every + [image for image, _ in evaluation_images(TARGETS[2], "mosaic", 1, 7)]


@pytest.fixture(scope="module")
def evaluation(drawn: list[Image.Image], clip: Clip) -> Pictures:
    samples = (ShardSample(f"{n:09d}", "", "", encode_jpeg(image)) for n, image in enumerate(drawn))
    return evaluation_pictures(samples, clip, 32)


def shard_of(samples: list[ShardSample], clip: Clip, out: Path) -> EmbeddingShard:
    embed_shard((("file", sample) for sample in samples), clip, 0, out)
    return EmbeddingShard.open(out)


def leaks_in(shard: EmbeddingShard, evaluation: Pictures, metadata: pa.Table | None = None) -> pa.Table:
    table = shard.metadata() if metadata is None else metadata
    return find_leaks(candidate_pictures(table, lambda rows: gather_images([shard], rows)), evaluation)


def test_the_demo_world_leaks_nothing(evaluation: Pictures, clip: Clip, tmp_path: Path) -> None:
    shard = shard_of(list(demo_samples(DemoWorld(seed=0), 0, ROWS)), clip, tmp_path)
    assert leaks_in(shard, evaluation).num_rows == 0


@pytest.mark.parametrize("edit", EDITS)
def test_planted_copies_are_found(
    edit: str, drawn: list[Image.Image], evaluation: Pictures, clip: Clip, tmp_path: Path
) -> None:
    planted = [ShardSample(f"{n}", "u", "c", EDITS[edit](im)) for n, im in enumerate(drawn[:PLANTED])]
    found = leaks_in(shard_of(planted, clip, tmp_path), evaluation)
    expected = [SAME_FILE] * PLANTED if edit == "exact" else [COPY] * PLANTED
    missed = PLANTED - found.num_rows
    assert missed <= (0 if edit in ("exact", "saved again") else 1)
    lines = found.to_pylist()
    assert all(line["image"] == f"{line['row']:09d}" for line in lines)
    unlike = sum(line["why"] != why for line, why in zip(lines, expected, strict=False))
    assert unlike <= (0 if edit in ("exact", "saved again") else 4)


def picture(
    name: object, sha: str | None, hashes: int, feature: list[float], hashed: bool = True
) -> Pictures:
    return Pictures(
        np.array([name], object),
        np.array([sha], object),
        np.array([hashes], np.int64),
        np.array([hashed]),
        np.array([feature], np.float32),
    )


@pytest.mark.parametrize(
    ("bits", "cosine", "why"),
    [
        (0, 0.96, COPY),
        (0, 0.94, None),  # below what makes near copies
        (6, 0.96, LOOKALIKE),
        (4, 0.99, COPY),
        (8, 1.0, None),
        (64, 1.0, None),  # a negative number as an integer
    ],
)
def test_hash_and_embedding_must_both_agree(bits: int, cosine: float, why: str | None) -> None:
    differing = 2**bits - 1 if bits < 64 else -1
    mine = picture(5, "a", differing, [cosine, float(np.sqrt(1 - cosine**2))])
    found = find_leaks([mine], picture("e", "b", 0, [1.0, 0.0]))
    assert found.column("why").to_pylist() == ([] if why is None else [why])


def test_without_a_hash_the_embedding_alone_makes_a_lookalike() -> None:
    mine = [picture(5, None, 0, [1.0, 0.0], hashed=False), picture(6, None, 0, [0.97, 0.243], hashed=False)]
    found = find_leaks(mine, picture("e", None, 0, [1.0, 0.0]))
    assert found.to_pylist() == [{"row": 5, "image": "e", "why": LOOKALIKE, "cosine": 1.0, "bits": None}]


def test_the_same_file_counts_even_if_it_cannot_be_read(clip: Clip) -> None:
    broken = ShardSample("e", "", "", b"no image")
    found = find_leaks(
        [picture(3, broken.sha256, 0, [1.0] + [0.0] * 127)], evaluation_pictures([broken], clip, 2)
    )
    assert [(line["row"], line["why"]) for line in found.to_pylist()] == [(3, SAME_FILE)]


def test_the_nearest_image_is_told_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    features = np.ones((9, 4)) + 0.05 * random.standard_normal((9, 4))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    one = Pictures(
        np.array([f"e{n}" for n in range(9)], object),
        np.array([None] * 9, object),
        np.zeros(9, np.int64),
        np.ones(9, bool),
        features.astype(np.float32),
    )
    mine = picture(1, None, 0, features[6].tolist())
    tables = []
    for block in (1024, 2):
        monkeypatch.setattr(leaks, "BLOCK", block)
        monkeypatch.setattr(leaks, "PAIRS", block)
        tables.append(find_leaks([mine], one).to_pylist())
    assert tables[0] == tables[1] and tables[0][0]["image"] == "e6"


def test_leaks_are_dropped_from_hits_and_told_unless_they_only_look_alike() -> None:
    hits = pa.table({"row": [1, 2, 1, 3], "rank": [1, 2, 3, 4]})
    assert without_rows(hits, [1]).to_pydict() == {"row": [2, 3], "rank": [2, 4]}
    lines = [
        {"row": row, "image": image, "why": why, "cosine": 1.0, "bits": 0}
        for row, image, why in [(1, "a", COPY), (2, "a", SAME_FILE), (3, "b", LOOKALIKE)]
    ]
    (told,) = warn_of_leaks(pa.Table.from_pylist(lines, leaks.SCHEMA), excluded=True)
    assert told.numbers == {"rows": 2, "images": 1} and "left out" in told.message
    (told,) = warn_of_leaks(pa.Table.from_pylist(lines, leaks.SCHEMA), excluded=False)
    assert "dataset.exclude_leaks" in told.message
    assert warn_of_leaks(pa.Table.from_pylist(lines[2:], leaks.SCHEMA), excluded=True) == []
