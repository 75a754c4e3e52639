"""What an artifact is: the recipe it was made from, the files it has, and how it was built.

Two hashes, kept apart on purpose. The **key** is known before anything is computed (what would be made);
the **digest** is known after (what was made). A child's key contains its parents' digests, not their keys,
so a parent that came out differently also makes its children anew.

The digest leaves out how an artifact was built, so it cannot vouch for that part. Since schema version 2 a
manifest therefore begins with a checksum of all its other bytes, and every later one will: a manifest whose
checksum is wrong is damaged, whatever version it claims.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from mudg_core.errors import ChecksumError, DataError, InputError
from mudg_core.storage import layout

SCHEMA_VERSION = 2  # 1 had no checksum
DIGEST_VERSION = 1  # what digests were always made with: another would change those of all artifacts
SEAL = b'{\n "checksum": "'  # where a manifest begins that has one


def _check_line(text: str) -> str:
    """People read these on terminals."""
    if not text.isprintable():
        raise ValueError("characters that cannot be printed")
    return text


def _check_moment(text: str) -> str:
    """ValueError for a date that nobody can read, or that leaves open where on earth it was."""
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a date without its time zone")
    return text


Line = Annotated[str, Field(max_length=500), AfterValidator(_check_line)]
Role = Annotated[Line, Field(min_length=1)]
Moment = Annotated[str, AfterValidator(_check_moment)]
Attempt = Annotated[str, AfterValidator(layout.check_token)]
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

    @property
    def place(self) -> str:
        """Where it lies, whatever came out there."""
        return f"{self.stage}/{self.key}"

    def __str__(self) -> str:
        return f"{self.stage}/{self.key[:12]}"


Parents = ArtifactRef | tuple[ArtifactRef, ...]


class Recipe(Record):
    """Everything that decides what an artifact will be; nothing that does not (no paths, no workers)."""

    stage: Stage
    algorithm: int = Field(
        ge=1, strict=True, description="raised whenever the code of the stage changes its result"
    )
    settings: JsonMap = {}
    parents: dict[Role, Parents] = {}
    weights: dict[Role, Hex] = Field(default={}, description="role -> sha256 of model weights")

    @property
    def key(self) -> str:
        """Content key; the order inside a list of parents matters, that of the roles does not."""
        parents = {role: _digests(refs) for role, refs in self.parents.items()}
        body = {"stage": self.stage, "algorithm": self.algorithm, "settings": self.settings}
        return hash_of(body | {"parents": parents, "weights": self.weights})

    def all_parents(self) -> tuple[ArtifactRef, ...]:
        by_role = (refs for _, refs in sorted(self.parents.items()))
        return tuple(ref for refs in by_role for ref in ((refs,) if isinstance(refs, ArtifactRef) else refs))

    def __str__(self) -> str:
        return f"{self.stage}/{self.key[:12]}"


def _digests(parents: Parents) -> str | list[str]:
    return parents.digest if isinstance(parents, ArtifactRef) else [parent.digest for parent in parents]


@dataclass(frozen=True)
class Facts:
    """What a stage says about its artifact: facts that a rerun repeats bit for bit, and the names of files
    that it does not (a report with wall times), which then stay out of the digest."""

    facts: dict[str, Any] = field(default_factory=dict)
    volatile: frozenset[str] = frozenset()


class FileEntry(Record):
    name: FileName
    size: int = Field(ge=0, strict=True)
    sha256: Hex
    volatile: bool = Field(default=False, strict=True)


class BuildInfo(Record):
    """How an artifact was built. Differs from run to run, therefore never part of the digest."""

    attempt: Attempt
    created: Moment
    seconds: float = Field(ge=0, allow_inf_nan=False, strict=True)
    mudg_version: Line
    code_version: Line = ""
    platform: Line = ""


class Manifest(Record):
    schema_version: int = Field(default=SCHEMA_VERSION, ge=1, le=SCHEMA_VERSION, strict=True)
    recipe: Recipe
    key: Hex
    files: tuple[FileEntry, ...]
    facts: JsonMap = {}
    circumstances: BuildInfo

    @model_validator(mode="after")
    def _key_is_true(self) -> Manifest:
        if self.key != self.recipe.key:
            raise ValueError(f"key {self.key} is not the key of the recipe")
        return self

    @model_validator(mode="after")
    def _files_are_there_once(self) -> Manifest:
        if len({entry.name for entry in self.files}) != len(self.files):
            raise ValueError("two files of one name")
        return self

    @property
    def digest(self) -> str:
        """Identity of the result: all but circumstances and volatile files."""
        body = self.model_dump(mode="json", exclude={"schema_version", "circumstances", "files"})
        stable = sorted((f for f in self.files if not f.volatile), key=lambda f: f.name)
        files = [[f.name, f.size, f.sha256] for f in stable]
        return hash_of(body | {"schema_version": DIGEST_VERSION, "files": files})

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files)

    @property
    def ref(self) -> ArtifactRef:
        return ArtifactRef(stage=self.recipe.stage, key=self.key, digest=self.digest)

    def entry(self, name: str) -> FileEntry | None:
        return next((entry for entry in self.files if entry.name == name), None)

    def path(self, name: str) -> str:
        return layout.attempt_file(self.recipe.stage, self.key, self.circumstances.attempt, name)

    def to_bytes(self) -> bytes:
        """With its own digest inside, for people, and sealed. Schema version 1 stays byte for byte what it
        was, as quarantine compares bytes."""
        body = self.model_dump(mode="json") | {"digest": self.digest}
        data = json.dumps(body, sort_keys=True, indent=1, allow_nan=False).encode()
        return data if self.schema_version == 1 else sealed(data)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Manifest:
        try:
            body = _body(data)
            if body["schema_version"] > SCHEMA_VERSION:
                raise _too_new(where, body["schema_version"])
            stated_digest = body.pop("digest")
            manifest = cls.model_validate(body)
        except (ValueError, KeyError, TypeError, RecursionError, InputError) as error:
            raise _damaged(
                where, str(error) if isinstance(error, _BrokenSeal) else type(error).__name__
            ) from error
        if manifest.digest != stated_digest:
            raise _damaged(where, "its digest differs from its content")
        return manifest


class _BrokenSeal(ValueError):
    """Bytes that are not those that were written."""


def sealed(data: bytes) -> bytes:
    """A JSON object as `json.dumps` indents it, with the checksum of these very bytes as its first field."""
    return SEAL + hashlib.sha256(data).hexdigest().encode() + b'",' + data.removeprefix(b"{")


def _body(data: bytes) -> dict[str, Any]:
    """The fields of a manifest whose bytes are as they were written: all but schema version 1 must have a
    checksum, and version 1 never had one."""
    plain = data
    if data.startswith(SEAL):
        plain = b"{" + data[len(SEAL) + 64 + len(b'",') :]
        if sealed(plain) != data:
            raise _BrokenSeal("its checksum differs from its content")
    body: dict[str, Any] = json.loads(plain.decode())
    if (body["schema_version"] == 1) is data.startswith(SEAL):
        raise _BrokenSeal("its schema version and its checksum do not go together")
    return body


def _too_new(where: str, version: int) -> DataError:
    """Not a ChecksumError: nothing is damaged, so nothing may be set aside."""
    what = f"the manifest was written by a newer release of mudg (schema version {version})"
    return DataError(what=what, where=where, fix="upgrade mudg, or use a store of your own (storage.url)")


def _damaged(where: str, why: str) -> ChecksumError:
    fix = "run again: the artifact will be rebuilt"
    return ChecksumError(what=f"the manifest is damaged ({why})", where=where, fix=fix)
