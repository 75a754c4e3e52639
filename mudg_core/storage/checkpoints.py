"""How far a long stage has come, kept in the store: a killed process, or another machine, goes on from there.

Two slots take turns, so that the newest checkpoint may be damaged and the one before it is still there. Both
are read, never listed; the highest step that is sound wins. Each write replaces exactly what its writer has
seen. Two processes on one stage compute the same, so one that loses a race has nothing left to save.

A checkpoint is safetensors, with step, facts and a sha256 in one entry of its header (safetensors shuffles
several, and the same checkpoint has to have the same bytes). The digest covers whose it is, step, facts,
names, types, shapes and values, so one flipped bit in any of them is noticed. A store reads and writes
objects whole: a checkpoint has at most `LIMIT_BYTES`, and saving or reading one takes up to twice its size in
memory beside the caller's arrays.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mudg_core.errors import ChecksumError, ConflictError, DataError
from mudg_core.storage import layout
from mudg_core.storage.manifest import JsonMap, Record, canonical
from mudg_core.storage.objects import Objects

ENTRY = "mudg"
LIMIT_BYTES = 5 * 10**9  # what S3 takes in one put, less the header; the same on every kind of store
WHOLE = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES = WHOLE | {"bool", "float16", "float32", "float64", "complex64"}
NOTHING = -1  # the step of a slot that is empty or damaged: below every real one

Arrays = Mapping[str, NDArray[Any]]
log = logging.getLogger(__name__)


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


@dataclass(frozen=True)
class Slot:
    """What a slot held when it was last read or written; `etag` None means no object."""

    path: str
    etag: str | None
    step: int


class Checkpoints:
    """Those of one artifact that is being made. Never part of it: they decide how soon, not what."""

    def __init__(self, objects: Objects, stage: str, key: str) -> None:
        self.objects, self.stage, self.key = objects, stage, key
        self.paths = tuple(layout.checkpoint(stage, key, slot) for slot in layout.SLOTS)
        self._seen: tuple[Slot, ...] | None = None

    def save(self, step: int, arrays: Arrays, facts: Mapping[str, JsonValue]) -> None:
        """Keeps a step beyond all that are kept; does nothing for one that is not, as somebody was faster.

        Slots are read once and then known by what was written to them: the condition of the write tells if
        that no longer holds. To start over on purpose, `clear` first.
        """
        older, newer = sorted(self._seen or self._look(), key=lambda slot: slot.step)
        data = encode(self.stage, self.key, step, arrays, facts)
        if step <= newer.step:
            return
        try:
            etag = self.objects.replace(older.path, data, older.etag)
        except ConflictError:  # somebody else saved, or cleared: go on, and look again next time
            self._seen = None
        else:
            self._seen = (newer, Slot(older.path, etag, step))

    def latest(self) -> Checkpoint | None:
        """The furthest sound one. Looks at both before it keeps either, so that memory never holds two."""
        self._seen = self._look()
        for slot in sorted(self._seen, key=lambda slot: slot.step, reverse=True):
            if slot.step > NOTHING and (checkpoint := self._read(slot.path)[1]):
                return checkpoint
        return None

    def clear(self) -> None:
        self._seen = None
        for path in self.paths:
            self.objects.delete(path)

    def _look(self) -> tuple[Slot, ...]:
        return tuple(self._slot(path) for path in self.paths)

    def _slot(self, path: str) -> Slot:
        etag, checkpoint = self._read(path)
        return Slot(path, etag, checkpoint.step if checkpoint else NOTHING)

    def _read(self, path: str) -> tuple[str | None, Checkpoint | None]:
        """A damaged slot counts as empty but for its etag, by which the next save replaces it."""
        stored = self.objects.read(path)
        if stored is None:
            return None, None
        try:
            return stored.etag, decode(stored.data, self.stage, self.key)
        except ChecksumError as error:
            log.warning("%s: %s; it is skipped", layout.uri(self.objects.url, path), error.what)
            return stored.etag, None
