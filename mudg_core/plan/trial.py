"""How fast this machine embeds: the real stage on a few made-up pairs, for a second or two.

Arithmetic alone says little of small models, whose layers leave most of a core idle, and nothing of decoding.
The weights are random where the real ones would have to be downloaded: a product takes as long either way.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from mudg_core.corpus.shards import ShardSample, encode_jpeg
from mudg_core.encode.embed import embed_shard
from mudg_core.encode.models import Clip, blank_clip

CAPTION = "a photo of a small red boat on a lake"  # as long as captions are
SECONDS = 1.5
MOST = 1024


def embed_rate(model: str, side: int, batch: int) -> float:
    """Rows a second of one worker with one thread, decoding, tokenising and writing included."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        clip = blank_clip(model)
        _seconds(clip, side, batch, 1)  # the first is slower
        rows = int(min(MOST, max(2.0, SECONDS / _seconds(clip, side, batch, 1))))
        return rows / _seconds(clip, side, batch, rows)
    finally:
        torch.set_num_threads(threads)


def _seconds(clip: Clip, side: int, batch: int, rows: int) -> float:
    samples = list(_pairs(side, rows))
    with tempfile.TemporaryDirectory(prefix="mudg-") as folder:
        begin = time.perf_counter()
        embed_shard(samples, clip, 0, Path(folder), batch_size=batch)
        return time.perf_counter() - begin


def _pairs(side: int, rows: int) -> Iterator[tuple[str, ShardSample]]:
    """Smooth pictures, which take as many bytes as photos do."""
    random = np.random.default_rng(0)
    for row in range(rows):
        few = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        picture = few.resize((side, side), Image.Resampling.BICUBIC)
        yield "trial", ShardSample(str(row), "", CAPTION, encode_jpeg(picture))
