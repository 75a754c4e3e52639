"""Embedding a corpus shard: samples in, features and metadata out, in one pass.

Threads decode and tokenise ahead of the forward pass; batches are filled from whatever comes next, across the
files of a shard. A bad sample costs that sample, never the shard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from mudg_core.corpus.decode import DEFAULT_LIMITS, Limits, Refused, decode
from mudg_core.corpus.shards import ShardSample
from mudg_core.encode.duplicates import half_cosines, perceptual_hashes
from mudg_core.encode.shard import Float32, Int64
from mudg_core.encode.writer import SCHEMA, Refusal, ShardWriter, Written

if TYPE_CHECKING:
    from mudg_core.encode.models import Clip, Pixels

T = TypeVar("T")
R = TypeVar("R")
Located = tuple[str, ShardSample]  # a sample and the file it lies in

CHUNK = 64  # samples that a thread prepares at a time
LINES = 1024  # of metadata that become one table: a table costs as much as a hundred lines in it
AHEAD = 4  # chunks that may wait for the forward pass, for each thread
TOO_MANY = "shard: more samples than were announced"
NO_IMAGE = "image: none"
OPTED_OUT = "opted out"


@dataclass(frozen=True)
class Reading:
    """How samples are read; nothing here decides what a good one becomes."""

    threads: int = 1  # 0: in the thread that computes
    limits: Limits = DEFAULT_LIMITS
    keep_opted_out: bool = False


class Ready(NamedTuple):
    """A sample that the model can take."""

    pixels: Pixels
    tokens: torch.Tensor
    line: dict[str, Any]


class Embedded(NamedTuple):
    """A batch that the model has seen."""

    images: Float32
    texts: Float32
    hashes: Int64
    lines: list[dict[str, Any]]


def embed_shard(
    samples: Iterable[Located],
    clip: Clip,
    first_row: int,
    out: Path,
    *,
    rows: int | None = None,
    batch_size: int | None = None,
    reading: Reading | None = None,
) -> Written:
    """Writes an embedded shard below `out` (see `shard`). Sample i gets row `first_row + i`; where the shard
    has announced how many `rows` it has, later ones are refused, as their numbers belong to others."""
    reading, size = reading or Reading(), batch_size or clip.batch_size
    last = None if rows is None else first_row + rows

    def prepare(chunk: Sequence[tuple[int, Located]]) -> tuple[list[Ready], list[Refusal]]:
        return _prepare(chunk, clip, reading, last)

    numbered = enumerate(samples, first_row)
    with ShardWriter(out, clip.dim) as writer:
        ready = _accepted(ahead(prepare, chunks(numbered, CHUNK), reading.threads), writer)
        embedded = (_forward(batch, clip, writer) for batch in chunks(ready, size))
        for batches in chunks(embedded, -(-LINES // size)):
            _write(batches, writer)
        return writer.close()


def _accepted(prepared: Iterable[tuple[list[Ready], list[Refusal]]], writer: ShardWriter) -> Iterator[Ready]:
    for ready, refusals in prepared:
        writer.refuse(refusals)
        yield from ready


def _prepare(
    chunk: Sequence[tuple[int, Located]], clip: Clip, reading: Reading, last: int | None
) -> tuple[list[Ready], list[Refusal]]:
    pixels, lines, refusals = [], [], []
    for row, (file, sample) in chunk:
        try:
            if last is not None and row >= last:
                raise Refused(TOO_MANY)
            image, line = _decode(sample, clip, reading)
        except Refused as refused:
            refusals.append(Refusal(row, sample.key, file, sample.url, refused.reason))
        else:
            pixels.append(image)
            lines.append({"row": row, "file": file, **line})
    tokens = clip.tokens([line["caption"] for line in lines]) if lines else torch.zeros(0)
    return [Ready(*parts) for parts in zip(pixels, tokens, lines, strict=True)], refusals


def _decode(sample: ShardSample, clip: Clip, reading: Reading) -> tuple[Pixels, dict[str, Any]]:
    if sample.opt_out and not reading.keep_opted_out:
        raise Refused(OPTED_OUT)
    if sample.image is None:
        raise Refused(sample.error_message or NO_IMAGE)
    image = decode(sample.image, reading.limits)
    return clip.pixels(image), {
        "key": sample.key,
        "url": sample.url,
        "caption": sample.caption,
        "sha256": sample.sha256,
        "width": sample.original_width or image.width,
        "height": sample.original_height or image.height,
        "caption_length": len(sample.caption),
        "opt_out": sample.opt_out,
    }


def _forward(batch: Sequence[Ready], clip: Clip, writer: ShardWriter) -> Embedded:
    """Features of a batch, and with them what only pixels can tell. Rows that say nothing are set aside."""
    pixels = np.stack([ready.pixels for ready in batch])
    tokens = torch.stack([ready.tokens for ready in batch])
    images, texts = clip.encode_images(pixels, len(batch)), clip.encode_tokens(tokens, len(batch))
    good, refusals = _usable(images, texts, [ready.line for ready in batch])
    writer.refuse(refusals)
    lines = [ready.line for ready, keep in zip(batch, good, strict=True) if keep]
    return Embedded(images[good], texts[good], perceptual_hashes(pixels)[good], lines)


def _write(batches: Sequence[Embedded], writer: ShardWriter) -> None:
    images, texts, hashes = (np.concatenate(arrays) for arrays in list(zip(*batches, strict=True))[:3])
    lines = [line for batch in batches for line in batch.lines]
    columns: dict[str, Any] = {name: [line.get(name) for line in lines] for name in SCHEMA.names}
    columns |= {"cosine": half_cosines(images, texts), "phash": hashes}
    writer.add(images, texts, pa.table(columns, schema=SCHEMA))


def _usable(
    images: Float32, texts: Float32, lines: Sequence[dict[str, Any]]
) -> tuple[NDArray[np.bool_], list[Refusal]]:
    both = np.concatenate([images, texts], axis=1)
    finite: NDArray[np.bool_] = np.isfinite(both).all(axis=1)
    good = finite & images.any(axis=1) & texts.any(axis=1)
    refusals = []
    for place in np.flatnonzero(~good).tolist():
        line, reason = lines[place], "zero norm" if finite[place] else "not finite"
        where = line["row"], line["key"], line["file"], line["url"]
        refusals.append(Refusal(*where, f"embedding: {reason}"))
    return good, refusals


def ahead(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """`function` of each item, in order, some items ahead of whoever takes the results. The items themselves
    are drawn here, one at a time, so that readers need not be safe to share."""
    if not threads:
        yield from map(function, items)
        return
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="prepare") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items, the last of them perhaps shorter."""
    source = iter(items)
    for first in source:
        yield list(chain([first], islice(source, size - 1)))
