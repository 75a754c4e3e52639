"""`this-machine`: a profile measured in a second or two, and how fast it embeds.

Sizes leave the caches and are small enough for a laptop. The best of a few tries counts: what slows a try
down is mostly somebody else's work. Arithmetic alone says little of small models, whose layers leave most of
a core idle, and nothing of decoding: so embedding is the real stage on a few generated pairs. Its weights are
random where the real ones would have to be downloaded: a product takes as long either way.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from mudg_core.corpus.shards import ShardSample, encode_jpeg
from mudg_core.encode.embed import embed_shard
from mudg_core.encode.models import Clip, blank_clip
from mudg_core.errors import StorageError
from mudg_core.plan.hardware import GIGA, THIS_MACHINE, Hardware

SIDE, COPY_BYTES, FILE_BYTES, TRIES = 2048, 128 << 20, 64 << 20, 3
CAPTION = "a photo of a small red boat on a lake"  # as long as captions are
TRIAL_SECONDS, TRIAL_ROWS = 1.5, 1024


def probe(folder: Path) -> Hardware:
    """This machine, with the disk that `folder` (or its nearest parent that exists) lies on."""
    folder = folder.expanduser().absolute()
    left, right = torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE)
    source, sink = np.ones(COPY_BYTES, np.uint8), np.zeros(COPY_BYTES, np.uint8)
    sgemm = 2 * SIDE**3 / _best_seconds(lambda: torch.mm(left, right)) / GIGA
    return Hardware(
        name=THIS_MACHINE,
        sgemm=sgemm,
        half=sgemm,  # on a CPU half precision saves memory and no time
        memory_bandwidth=2 * COPY_BYTES / _best_seconds(lambda: np.copyto(sink, source)) / GIGA,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIGA,
        storage_bandwidth=disk_rate(next(path for path in (folder, *folder.parents) if path.is_dir())),
        source=f"measured just now on {os.cpu_count()} cores",
    )


def _best_seconds(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(TRIES):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def disk_rate(folder: Path, size: int = FILE_BYTES) -> float:
    """GB/s of writing a file through to the disk and reading it back, half of the bytes each way."""
    data = os.urandom(1 << 20)
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            begin = time.perf_counter()
            for _ in range(size >> 20):
                file.write(data)
            os.fsync(file.fileno())
            if hasattr(
                os, "posix_fadvise"
            ):  # Linux: drop the file from the cache, so that reading means reading
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            while file.read(1 << 20):
                pass
            return 2 * size / (time.perf_counter() - begin) / GIGA
    except OSError as error:
        raise StorageError(
            what=f"the disk cannot be measured: {error}",
            where=str(folder),
            fix="set storage.url to a folder that can be written, or give --hardware",
        ) from error


def embed_rate(model: str, side: int, batch: int) -> float:
    """Rows a second of one worker with one thread, decoding, tokenising and writing included."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        clip = blank_clip(model)
        _embed_seconds(clip, side, batch, 1)  # the first is slower
        rows = int(min(TRIAL_ROWS, max(2.0, TRIAL_SECONDS / _embed_seconds(clip, side, batch, 1))))
        return rows / _embed_seconds(clip, side, batch, rows)
    finally:
        torch.set_num_threads(threads)


def _embed_seconds(clip: Clip, side: int, batch: int, rows: int) -> float:
    random = np.random.default_rng(0)
    samples = [("trial", _smooth_picture(random, side, row)) for row in range(rows)]
    with tempfile.TemporaryDirectory(prefix="mudg-") as folder:
        begin = time.perf_counter()
        embed_shard(samples, clip, 0, Path(folder), batch_size=batch)
        return time.perf_counter() - begin


def _smooth_picture(random: np.random.Generator, side: int, row: int) -> ShardSample:
    """It takes as many bytes as a photo does."""
    pixels = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8))
    picture = pixels.resize((side, side), Image.Resampling.BICUBIC)
    return ShardSample(str(row), "", CAPTION, encode_jpeg(picture))
