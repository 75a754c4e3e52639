"""Every error that mudg raises on purpose, in one tree.

    MudgError
    ├── SettingsError            a setting is unknown, out of range or contradictory
    ├── InputError               what the user submitted (target spec, label file, path) cannot be used
    ├── DataError                stored or downloaded data is not what it claims to be
    │   ├── ChecksumError        bytes differ from the checksum in their manifest
    │   ├── MissingArtifactError a manifest, or a file that one names, is not there
    │   └── GateError            an index finds less than was required of it
    ├── ModelError               weights or a model configuration cannot be loaded or do not fit
    ├── StorageError             the store does not do what was asked of it
    │   ├── CredentialsError     the store refused the credentials: retrying cannot help
    │   ├── ConflictError        another process wrote first: the caller decides what that means
    │   └── UnsafeStoreError     the store ignores conditional puts: two writers could both win
    ├── TrainingError            training cannot go on (a loss that is not finite)
    └── OrchestrationError       the machinery around the method failed (cluster, server, time-out)
        ├── VersionError         a worker runs other code than the flow: it will at every attempt
        └── UnwantedError        nobody wants the work any more: its flow was cancelled, or has died

Each says what happened, where, and what to do about it, because the person who reads it is rarely the
person who wrote the line that raised it.
"""

from __future__ import annotations


class MudgError(Exception):
    """Base of all our errors; `retryable` tells the task policy whether trying again can help."""

    retryable = False
    exit_code = 1

    def __init__(self, *, what: str, where: str = "", fix: str = "") -> None:
        self.what, self.where, self.fix = what, where, fix
        super().__init__(what, where, fix)

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.fix:
            lines.append(f"  to do: {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process borders on Dask, and keyword-only arguments do not pickle by default."""
        return _rebuild, (type(self), self.what, self.where, self.fix)


def _rebuild(kind: type[MudgError], what: str, where: str, fix: str) -> MudgError:
    return kind(what=what, where=where, fix=fix)


class SettingsError(MudgError):
    exit_code = 2


class InputError(MudgError):
    exit_code = 2


class DataError(MudgError):
    exit_code = 3


class ChecksumError(DataError):
    pass


class MissingArtifactError(DataError):
    pass


class GateError(DataError):
    pass


class ModelError(MudgError):
    exit_code = 3


class StorageError(MudgError):
    retryable = True
    exit_code = 4


class CredentialsError(StorageError):
    retryable = False


class ConflictError(StorageError):
    retryable = False


class UnsafeStoreError(StorageError):
    retryable = False


class TrainingError(MudgError):
    exit_code = 5


class OrchestrationError(MudgError):
    retryable = True
    exit_code = 6


class VersionError(OrchestrationError):
    retryable = False


class UnwantedError(OrchestrationError):
    retryable = False
