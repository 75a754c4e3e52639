"""Corpus shards, and what is read from them."""

from __future__ import annotations

from mudg_core.corpus.demo.shard import write_demo_shard
from mudg_core.corpus.demo.world import DemoWorld
from mudg_core.storage import Facts
from tasks.policy import Work, stage


@stage("corpus-shard", settings=("corpus.seed", "corpus.image_size"))
def draw_shard(work: Work, *, first_row: int, rows: int) -> Facts:
    """A shard of the demo world, as img2dataset would have written it."""
    corpus = work.settings.corpus
    world = DemoWorld(seed=corpus.seed, size=corpus.image_size)
    written = write_demo_shard(
        world, first_row, rows, work.scratch / "shard.tar", work.scratch / "shard.parquet"
    )
    return Facts({"rows": rows, "images": written, "first_row": first_row})
