"""Corpus shards to embeddings."""

from __future__ import annotations

from mudg_core.corpus.decode import Limits
from mudg_core.corpus.shard_reader import RegisteredShard, open_shard
from mudg_core.encode.shard import EmbeddingShard
from mudg_core.processes import usable_cpus
from mudg_core.storage import ArtifactRef, Facts
from tasks.policy import Work, stage
from tasks.run import counted


@stage(
    "embedding-shard",
    algorithm=3,
    settings=("encode.batch_size", "corpus.max_image_bytes", "corpus.max_pixels", "corpus.opt_out"),
    weights=("encode.model",),
    gpu=True,
)
def embed(work: Work, *, shard: ArtifactRef) -> Facts:
    """Image and text features of one corpus shard; those of a published one are taken over."""
    from mudg_core.encode.embed import Reading, embed_shard
    from mudg_core.encode.published import take_over

    corpus, clip = work.settings.corpus, work.encoder(work.settings.encode.model)
    opened = open_shard(work.store, shard)
    with work.store.temporary() as folder:
        if isinstance(opened, RegisteredShard) and opened.shard.kind == "embeddings":
            done = take_over(opened.files, opened.shard, clip, folder, work.scratch)
        else:
            limits = Limits(max_bytes=corpus.max_image_bytes, max_pixels=corpus.max_pixels)
            threads = work.settings.compute.decoders(usable_cpus())
            reading = Reading(threads, limits, corpus.opt_out == "keep")
            rows = opened.rows
            work.count(rows, "images")
            samples = counted(opened.samples(folder), rows, work.progress)
            size = work.settings.encode.batch_size
            done = embed_shard(
                samples, clip, opened.first_row, work.scratch, rows=rows, batch_size=size, reading=reading
            )
    facts = {"rows": done.rows, "duplicates": done.duplicates, "refused": done.refused}
    return Facts(facts | {"dim": clip.dim, "dtype": "float16"})


@stage("screened-shard", settings=("corpus.dedup", "corpus.min_cosine"), weights=("encode.model",))
def screen(work: Work, *, shard: ArtifactRef, embedding: ArtifactRef) -> Facts:
    """The same without rows that are near copies or whose caption does not fit. `shard` is where images
    lie."""
    from mudg_core.encode.writer import screen as leave_out

    corpus, found = work.settings.corpus, EmbeddingShard.open(work.store.folder(embedding))
    refused = leave_out(found, work.scratch, dedup=corpus.dedup, min_cosine=corpus.min_cosine)
    rows = len(found.rows) - sum(refused.values())
    return Facts({"rows": rows, "refused": refused, "dim": found.images.shape[1], "dtype": "float16"})
