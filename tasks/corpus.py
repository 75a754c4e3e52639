"""Corpus shards: drawn, or downloaded from their addresses."""

from __future__ import annotations

from mudg_core.corpus.demo.world import DemoWorld, demo_samples
from mudg_core.corpus.shard_reader import TABLE, TAR
from mudg_core.corpus.shards import write_shard
from mudg_core.corpus.sources import links
from mudg_core.corpus.sources import shard as registered
from mudg_core.corpus.sources.files import SourceFiles
from mudg_core.storage import ArtifactRef, Facts
from tasks.policy import Work, stage
from tasks.run import counted


@stage("corpus-shard", settings=("corpus.seed", "corpus.image_size"))
def draw_shard(work: Work, *, first_row: int, rows: int) -> Facts:
    """A shard of the demo world, as img2dataset would have written it."""
    corpus = work.settings.corpus
    world = DemoWorld(seed=corpus.seed, size=corpus.image_size)
    work.count(rows, "images")
    samples = counted(demo_samples(world, first_row, rows), rows, work.progress)
    written = write_shard(samples, work.scratch / TAR, work.scratch / TABLE)
    return Facts({"rows": rows, "images": written, "first_row": first_row})


@stage(
    "downloaded-shard",
    algorithm=2,
    settings=(
        "download.image_size",
        "download.quality",
        "download.max_pixels",
        "download.opt_out_directives",
    ),
)
def download_shard(work: Work, *, shard: ArtifactRef) -> Facts:
    """Images of a shard of links, through the guard. Links that are dead now stay so in this shard."""
    from mudg_core.corpus.web.download import download

    found = registered.load(work.store, shard)
    listed = links.read(SourceFiles(found.url, work.store.settings), found)
    work.count(found.rows, "links")
    done = download(listed, work.scratch, work.settings.download, work.progress)
    facts = {"rows": found.rows, "images": done.images, "first_row": found.first_row, "refused": done.reasons}
    return Facts(facts | {"rounds": done.rounds, "yield": round(done.image_share, 6)})
