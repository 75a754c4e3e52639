"""What a classifier took every evaluation image for, kept beside its scores.

An accuracy alone cannot say whether two classifiers differ by more than chance. Which images each of them
gets right can: `resampling.py` compares them image by image.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mudg_core.errors import DataError

Bool = NDArray[np.bool_]
Int64 = NDArray[np.int64]
ByDomain = Mapping[str, Int64]

ANSWERS = "answers.parquet"
DOMAIN, LABEL = "domain", "label"


def column_name(arm: str, way: str) -> str:
    """Of the answers of one arm (`mudg`, `zero_shot`) with single or averaged prompts."""
    return f"{arm}/{way}"


def write_answers(folder: Path, labels: ByDomain, predicted: Mapping[str, ByDomain]) -> None:
    """A row an image, in the order of the evaluation set; `predicted` has the columns."""
    domains = [name for name, truth in labels.items() for _ in truth]
    columns: dict[str, object] = {
        DOMAIN: pa.array(domains).dictionary_encode(),
        LABEL: _joined(labels, labels),
    }
    columns |= {name: _joined(answers, labels) for name, answers in predicted.items()}
    pq.write_table(pa.table(columns), folder / ANSWERS)


def read_hits(file: Path, column: str) -> dict[str, Bool]:
    """Which images were taken for what they are, by domain."""
    table = pq.read_table(file)
    if column not in table.column_names:
        raise DataError(
            what=f"no answers of {column}", where=str(file), fix="delete the artifact and run again"
        )
    hits = table[column].to_numpy() == table[LABEL].to_numpy()
    domains = np.asarray(table[DOMAIN].to_pylist())
    return {name: hits[domains == name] for name in dict.fromkeys(domains.tolist())}


def _joined(answers: ByDomain, labels: ByDomain) -> NDArray[np.int32]:
    return np.concatenate([answers[domain] for domain in labels]).astype(np.int32)
