"""embedding-reader over folders: leaves all rows in `values.npy`, their metadata in `lines.json`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from embedding_reader import EmbeddingReader

BATCH = 64  # several to a shard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--embeddings", nargs="+", required=True)
    parser.add_argument("--metadata", nargs="*")
    parser.add_argument("--columns", nargs="*")
    asked = parser.parse_args()
    more = {}
    if asked.metadata:
        more = {"metadata_folder": asked.metadata, "meta_columns": asked.columns}
    reader = EmbeddingReader(asked.embeddings, file_format="parquet_npy" if more else "npy", **more)
    values, lines = zip(*reader(batch_size=BATCH, show_progress=False), strict=True)
    np.save(asked.out / "values.npy", np.concatenate(values))
    (asked.out / "lines.json").write_text(json.dumps(pd.concat(lines).to_dict("list")))


if __name__ == "__main__":
    main()
