"""Where a corpus comes from. Each kind of source is a module with the same few functions:

    recognises(entries)                       is this such a source?
    parts(files, entries, rows_per_shard)     what there is to embed, as lists of files that stay together
    samples(files, shard, scratch)            (webdataset, folder) its images and captions
    images(files, file, keys, scratch)        (webdataset, folder) some images once more

`links` are downloaded before anything else, and `embeddings` are taken over as they are (`encode.published`).
"""

from __future__ import annotations

from types import ModuleType

from mudg_core.corpus.sources import embeddings, folder, links, webdataset

# The first that recognises a source has it: tars of img2dataset have parquet files beside them, and so on.
KINDS: dict[str, ModuleType] = {
    "embeddings": embeddings,
    "webdataset": webdataset,
    "links": links,
    "folder": folder,
}
