"""What an artifact is: the recipe it was made from, the files it has, and how it came about.

Two hashes, kept apart on purpose. The **key** is known before anything is computed (what would be made);
the **digest** is known after (what was made). A child's key contains its parents' digests, not their keys,
so a parent that came out differently also makes its children anew.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from mudg_core.errors import ChecksumError, DataError, InputError
from mudg_core.storage import layout

SCHEMA_VERSION = 1

Hex = Annotated[str, AfterValidator(layout.check_hex)]
Stage = Annotated[str, AfterValidator(lambda text: layout.check_name(text, "stage"))]
FileName = Annotated[str, AfterValidator(layout.check_file_name)]


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value that is ever hashed or stored; NaN has none."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def hash_of(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def _as_json(value: Any) -> Any:
    """Refuses what JSON cannot hold (NaN, arrays, paths) where it is handed in; tuples become lists."""
    try:
        return json.loads(canonical(value))
    except TypeError as error:
        raise ValueError(str(error)) from error


JsonMap = Annotated[dict[str, JsonValue], BeforeValidator(_as_json)]


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ArtifactRef(Record):
    """What tasks pass around instead of arrays: enough to find an artifact and to know it is the same."""

    stage: Stage
    key: Hex
    digest: Hex

    def __str__(self) -> str:
        return f"{self.stage}/{self.key[:12]}"


def _many(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Parents = Annotated[ArtifactRef | tuple[ArtifactRef, ...], BeforeValidator(_many)]


class Recipe(Record):
    """Everything that decides what an artifact will be; nothing that does not (no paths, no workers)."""

    stage: Stage
    algorithm: int = Field(ge=1, description="raised whenever the code of the stage changes its result")
    settings: JsonMap = {}
    parents: dict[str, Parents] = {}
    weights: dict[str, Hex] = Field(default={}, description="role -> sha256 of model weights")

    @property
    def key(self) -> str:
        """Content key; the order inside a list of parents matters, that of the roles does not."""
        return hash_of(
            {
                "stage": self.stage,
                "algorithm": self.algorithm,
                "settings": self.settings,
                "parents": {role: _digests(parents) for role, parents in self.parents.items()},
                "weights": self.weights,
            }
        )

    def all_parents(self) -> tuple[ArtifactRef, ...]:
        found: list[ArtifactRef] = []
        for _, parents in sorted(self.parents.items()):
            found.extend([parents] if isinstance(parents, ArtifactRef) else parents)
        return tuple(found)

    def __str__(self) -> str:
        return f"{self.stage}/{self.key[:12]}"


def _digests(parents: ArtifactRef | tuple[ArtifactRef, ...]) -> str | list[str]:
    if isinstance(parents, ArtifactRef):
        return parents.digest
    return [parent.digest for parent in parents]


@dataclass(frozen=True)
class Facts:
    """What the maker of an artifact says about it: facts that a rerun repeats bit for bit, and the names
    of files that it does not (a report with wall times), which then stay out of the digest."""

    facts: dict[str, Any] = field(default_factory=dict)
    volatile: frozenset[str] = frozenset()


class FileEntry(Record):
    name: FileName
    size: int = Field(ge=0)
    sha256: Hex
    volatile: bool = False


class Circumstances(Record):
    """How an artifact came about. Differs from run to run, therefore never part of the digest."""

    attempt: str
    created: str
    seconds: float
    mudg_version: str
    code_version: str = ""
    platform: str = ""


class Manifest(Record):
    schema_version: int = SCHEMA_VERSION
    recipe: Recipe
    key: Hex
    files: tuple[FileEntry, ...]
    facts: JsonMap = {}
    circumstances: Circumstances

    @model_validator(mode="after")
    def _key_is_true(self) -> Manifest:
        if self.key != self.recipe.key:
            raise ValueError(f"key {self.key} is not the key of the recipe")
        return self

    @property
    def digest(self) -> str:
        """Identity of the result: all but circumstances and volatile files."""
        body = self.model_dump(mode="json", exclude={"circumstances", "files"})
        stable = sorted((f for f in self.files if not f.volatile), key=lambda f: f.name)
        return hash_of(body | {"files": [[f.name, f.size, f.sha256] for f in stable]})

    @property
    def ref(self) -> ArtifactRef:
        return ArtifactRef(stage=self.recipe.stage, key=self.key, digest=self.digest)

    def entry(self, name: str) -> FileEntry | None:
        return next((entry for entry in self.files if entry.name == name), None)

    def path(self, name: str) -> str:
        return layout.attempt_file(self.recipe.stage, self.key, self.circumstances.attempt, name)

    def to_bytes(self) -> bytes:
        """With its own digest inside, so that a flipped bit in a manifest is noticed like any other."""
        body = self.model_dump(mode="json") | {"digest": self.digest}
        return json.dumps(body, sort_keys=True, indent=1, allow_nan=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Manifest:
        try:
            body = json.loads(data)
            version = int(body["schema_version"])
            if version > SCHEMA_VERSION:
                raise _too_new(where, version)
            claimed = body.pop("digest")
            manifest = cls.model_validate(body)
        except (ValueError, KeyError, AttributeError, TypeError, ValidationError, InputError) as error:
            raise _unreadable(where, type(error).__name__) from error
        if manifest.digest != claimed:
            raise _unreadable(where, "its digest differs from its content")
        return manifest


def _too_new(where: str, version: int) -> DataError:
    """Not a ChecksumError: nothing is damaged, so nothing may be set aside."""
    what = f"the manifest was written by a newer release of mudg (version {version} of its form)"
    return DataError(what=what, where=where, fix="upgrade mudg, or use a store of your own (storage.url)")


def _unreadable(where: str, why: str) -> ChecksumError:
    return ChecksumError(
        what=f"the manifest is damaged ({why})", where=where, fix="run again: the artifact will be rebuilt"
    )
