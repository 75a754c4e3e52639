"""A checkpoint as bytes and back: safetensors, with step, facts and a sha256 in one entry of its header.

The digest covers all that is meant (whose, which step, facts, names, types, shapes, values), so one flipped
bit in any of it is noticed. There is one entry because safetensors shuffles several: the same checkpoint
has to have the same bytes, whoever writes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mudg_core.errors import ChecksumError, DataError
from mudg_core.storage import layout
from mudg_core.storage.manifest import JsonMap, Record, canonical

ENTRY = "mudg"
LIMIT_BYTES = 5 * 10**9  # what S3 takes in one put, less the header; the same on every kind of store
WHOLE = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES = WHOLE | {"bool", "float16", "float32", "float64", "complex64"}

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """How far a stage had come: everything that it needs to go on as if it had never stopped."""

    step: int
    arrays: dict[str, NDArray[Any]]
    facts: dict[str, JsonValue]


class Head(Record):
    """What is said about the arrays. It names its artifact, so a stray copy is not taken for another's."""

    stage: str
    key: str
    step: Annotated[int, Field(ge=0, strict=True)]
    facts: JsonMap

    def digest(self, arrays: Arrays) -> str:
        """Of values, not of files: names in order, since a dictionary's order means nothing."""
        parts = [[name, array.dtype.name, list(array.shape)] for name, array in sorted(arrays.items())]
        hasher = hashlib.sha256(canonical([self.model_dump(mode="json"), parts]))
        for _, array in sorted(arrays.items()):
            hasher.update(array.reshape(-1).view(np.uint8).data)
        return hasher.hexdigest()


def encode(stage: str, key: str, step: int, arrays: Arrays, facts: Mapping[str, JsonValue]) -> bytes:
    where = f"{stage}/{key[:12]}, step {step}"
    head = _head(stage, key, step, facts, where)
    plain = {layout.check_array_name(name): _plain(name, array, where) for name, array in arrays.items()}
    _check_size(plain, where)
    entry = {"head": head.model_dump(mode="json"), "sha256": head.digest(plain)}
    return save(plain, metadata={ENTRY: canonical(entry).decode()})


def decode(data: bytes, stage: str, key: str) -> Checkpoint:
    """ChecksumError for whatever `encode` did not write for this stage and key, however it came about."""
    try:
        arrays = load(data)
        size = int.from_bytes(data[:8], "little")
        entry = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][ENTRY])
        head = Head.model_validate(entry["head"])
        sound = head.digest(arrays) == entry["sha256"] and (head.stage, head.key) == (stage, key)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ChecksumError(what=f"the checkpoint is damaged ({type(error).__name__})") from error
    if not sound:
        raise ChecksumError(what="the checkpoint differs from its checksum, or is another stage's")
    return Checkpoint(head.step, arrays, head.facts)


def _head(stage: str, key: str, step: int, facts: Mapping[str, JsonValue], where: str) -> Head:
    try:
        return Head.model_validate({"stage": stage, "key": key, "step": step, "facts": dict(facts)})
    except ValidationError as error:
        first = error.errors()[0]
        what = f"not a checkpoint ({'.'.join(map(str, first['loc']))}): {first['msg']}"
        fix = "a step is a whole number from 0 on; facts are finite plain numbers, text and lists"
        raise DataError(what=what, where=where, fix=fix) from error


def _plain(name: str, array: NDArray[Any], where: str) -> NDArray[Any]:
    """As it lies in the file. safetensors copies memory as it finds it: a transposed array, or one whose
    bytes are in the other order, would come back as other numbers and nobody would notice."""
    array = np.asarray(array)
    if array.dtype.name not in DTYPES:
        what = f"array {name!r} of type {array.dtype} cannot be in a checkpoint"
        raise DataError(what=what, where=where, fix=f"use one of: {', '.join(sorted(DTYPES))}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _check_size(arrays: Arrays, where: str) -> None:
    size = sum(array.nbytes for array in arrays.values())
    if size > LIMIT_BYTES:
        what = f"a checkpoint of {size} bytes is more than a store takes at once ({LIMIT_BYTES})"
        raise DataError(what=what, where=where, fix="keep less in it, or keep it in narrower types")
