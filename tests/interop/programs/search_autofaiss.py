"""autofaiss: builds an index of its own choice over folders, and leaves what queries find in `found.npy`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from autofaiss import build_index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="with queries.npy")
    parser.add_argument("nearest", type=int)
    parser.add_argument("--embeddings", nargs="+", required=True)
    asked = parser.parse_args()
    index, _ = build_index(
        asked.embeddings,
        index_path=str(asked.out / "knn.index"),
        index_infos_path=str(asked.out / "infos.json"),
        metric_type="ip",
        nb_cores=1,
    )
    _, found = index.search(np.load(asked.out / "queries.npy"), asked.nearest)
    np.save(asked.out / "found.npy", found)


if __name__ == "__main__":
    main()
