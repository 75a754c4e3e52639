"""Errors of an S3 server, or of the way to it, as our own. Only here are their error codes read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from boto3.exceptions import Boto3Error  # type: ignore[import-untyped, unused-ignore]
from botocore.exceptions import (  # type: ignore[import-untyped, unused-ignore]
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ResponseStreamingError,
)
from s3transfer.exceptions import RetriesExceededError  # type: ignore[import-untyped, unused-ignore]

from mudg_core.errors import ConflictError, CredentialsError, MissingArtifactError, MudgError, StorageError

NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)
CUT_SHORT = (ResponseStreamingError, IncompleteReadError, FlexibleChecksumError)
BAD_TOKENS = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "AuthorizationHeaderMalformed"}
CREDENTIALS_FIX = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they may do with the bucket"


@contextmanager
def s3_errors(where: str) -> Iterator[None]:
    """Errors of credentials lose their cause on purpose: requests, and so secrets, are not to be logged."""
    try:
        yield
    except ClientError as error:
        ours = _answer(error, where)
        raise ours from (None if isinstance(ours, CredentialsError) else error)
    except NO_CREDENTIALS as error:
        what = f"no usable credentials for the store ({type(error).__name__})"
        raise CredentialsError(what=what, where=where, fix=CREDENTIALS_FIX) from None
    except (BotoCoreError, Boto3Error, RetriesExceededError) as error:
        what = f"the store cannot be reached ({_kind(error)})"
        fix = "check storage.endpoint_url and the network, then run again: finished artifacts are kept"
        raise StorageError(what=what, where=where, fix=fix) from error


def is_retryable_answer(error: BaseException) -> bool:
    """What botocore does not repeat by itself: two writers at once (409), and a body that broke off."""
    cause = error.__cause__
    return isinstance(cause, CUT_SHORT) or (isinstance(cause, ClientError) and status_of(cause) == 409)


def not_implemented(error: MudgError) -> bool:
    cause = error.__cause__
    return isinstance(cause, ClientError) and status_of(cause) == 501


def status_of(error: ClientError) -> int:
    return int(_part(error, "ResponseMetadata").get("HTTPStatusCode", 0))


def _answer(error: ClientError, where: str) -> MudgError:
    code, status = str(_part(error, "Error").get("Code", "")), status_of(error)
    if status == 412:
        return ConflictError(what="another process wrote the object first", where=where)
    if code == "NoSuchBucket":
        fix = "create the bucket (`aws s3 mb s3://NAME`), or correct storage.url"
        return StorageError(what="the bucket does not exist", where=where, fix=fix)
    if code in ("NoSuchKey", "NotFound", "404"):
        return MissingArtifactError(what="the object is not there", where=where)
    if code == "RequestTimeTooSkewed":
        what = "the store refused the signature: this machine's clock is wrong"
        return CredentialsError(what=what, where=where, fix="set the clock (NTP), then run again")
    if status in (401, 403) or code in BAD_TOKENS:
        what = f"the store refused the credentials ({code})"
        return CredentialsError(what=what, where=where, fix=CREDENTIALS_FIX)
    what = f"the store answered {code or 'an error'} ({status}), also when asked again"
    return StorageError(what=what, where=where, fix="look at the store, then run again: artifacts are kept")


def _kind(error: Exception) -> str:
    last = getattr(error, "last_exception", None)
    return type(last or error).__name__


def _part(error: ClientError, name: str) -> dict[str, Any]:
    return dict(error.response.get(name) or {})
