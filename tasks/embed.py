"""Corpus shards to embeddings."""

from __future__ import annotations

from mudg_core.corpus.shards import read_shard
from mudg_core.encode.embed import embed_shard
from mudg_core.storage import ArtifactRef, Facts
from tasks.policy import Work, stage


@stage("embedding-shard", settings=("encode.batch_size",), weights=("encode.model",), gpu=True)
def embed(work: Work, *, shard: ArtifactRef) -> Facts:
    """Image and text features of one corpus shard."""
    encode = work.settings.encode
    clip = work.clip(encode.model)
    first_row = int(str(work.store.manifest(shard).facts["first_row"]))
    samples = read_shard(work.store.file(shard, "shard.tar"))
    embedded = embed_shard(samples, clip, first_row, encode.batch_size, work.scratch)
    return Facts({"rows": embedded.rows, "refused": embedded.refused, "dim": clip.dim, "dtype": "float16"})
