"""A store in an S3 bucket. boto3 rather than fsspec, because a lost race must be told from other failures.

botocore repeats what is safe to repeat. That has one consequence of which everything here is aware: a put
whose reply was lost is repeated, and the repetition is refused because the first one succeeded. So a
refused writer looks whether the bytes that are there are its own.
"""

from __future__ import annotations

import base64
import hashlib
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, TypeVar

import boto3  # type: ignore[import-untyped, unused-ignore]
from boto3.s3.transfer import TransferConfig, create_transfer_manager  # type: ignore[import-untyped, unused-ignore]
from botocore.config import Config  # type: ignore[import-untyped, unused-ignore]

from mudg_core.errors import ConflictError, MissingArtifactError, StorageError
from mudg_core.retries import s3_requests
from mudg_core.settings import StorageSettings
from mudg_core.storage.objects import BLOCK, Entry, Stored
from mudg_core.storage.s3_errors import is_retryable_answer, not_implemented, s3_errors

PART_BYTES = 64 * BLOCK

# What browsers show rather than save. Other files have no type; mimetypes would ask the machine, and differ.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}

Client: TypeAlias = Any  # boto3 makes its clients at run time and has no types
T = TypeVar("T")


class S3Objects:
    """See `Objects`."""

    def __init__(
        self, settings: StorageSettings, client: Client | None = None, part_bytes: int = PART_BYTES
    ) -> None:
        self.bucket, _, prefix = settings.url.removeprefix("s3://").partition("/")
        self.prefix = prefix.strip("/")
        self.retries, self.part_bytes = settings.retries, part_bytes
        self.client: Client = client or make_client(settings)
        self.settings = settings
        weakref.finalize(self, self.client.close)  # or its sockets stay open until nobody knows when

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def local_path(self, path: str) -> Path | None:
        return None

    def link(self, path: str, seconds: int) -> str:
        """The type is in the link too: objects of earlier releases were stored without one."""
        parameters = self._object(path) | _content_type(path, "ResponseContentType")
        with s3_errors(self._where(path)):
            return str(
                self._signer.generate_presigned_url("get_object", Params=parameters, ExpiresIn=seconds)
            )

    @cached_property
    def _signer(self) -> Client:
        """A signature holds for one host only, and signing asks nobody: a client that sends no request."""
        endpoint = self.settings.link_endpoint_url
        return (
            make_client(self.settings.model_copy(update={"endpoint_url": endpoint}))
            if endpoint
            else self.client
        )

    def put_new(self, path: str, data: bytes) -> str:
        return self._put(path, data, IfNoneMatch="*")

    def read(self, path: str) -> Stored | None:
        def request() -> Stored:
            reply = self.client.get_object(**self._object(path))
            return Stored(reply["Body"].read(), str(reply["ETag"]))

        try:
            return self._call(path, request)
        except MissingArtifactError:
            return None

    def replace(self, path: str, data: bytes, expected_etag: str | None) -> str:
        if expected_etag is None:
            return self.put_new(path, data)
        try:
            return self._put(path, data, IfMatch=expected_etag)
        except MissingArtifactError as error:  # some servers say 404 where others say 412
            raise ConflictError(what="the object was deleted meanwhile", where=error.where) from error

    def upload(self, path: str, local_file: Path, sha256: str) -> None:
        """In parts if large; parts of a failed upload are aborted by the transfer manager."""
        with s3_errors(self._where(path)), self._transfers() as transfers:
            extra = {"ChecksumAlgorithm": "SHA256"} | _content_type(path, "ContentType")
            transfers.upload(str(local_file), self.bucket, self._key(path), extra).result()
        if not self._stored_right(path, local_file, sha256):
            self.delete(path)
            raise StorageError(
                what="the store kept other bytes than were sent", where=self._where(path), fix="run again"
            )

    def download(self, path: str, local_file: Path) -> None:
        with s3_errors(self._where(path)), self._transfers() as transfers:
            transfers.download(self.bucket, self._key(path), str(local_file)).result()

    def exists(self, path: str) -> bool:
        try:
            self._call(path, lambda: self.client.head_object(**self._object(path)))
        except MissingArtifactError:
            return False
        return True

    def delete(self, path: str, expected_etag: str | None = None) -> None:
        """Compared here first, for servers that ignore or refuse the condition of a delete."""
        if expected_etag is None:
            self._call(path, lambda: self.client.delete_object(**self._object(path)))
            return
        stored = self.read(path)
        if stored is None or stored.etag != expected_etag:
            raise ConflictError(what="another process changed the object", where=self._where(path))
        try:
            self._call(path, lambda: self.client.delete_object(**self._object(path), IfMatch=expected_etag))
        except StorageError as error:
            if not not_implemented(error):
                raise
            self.delete(path)

    def list(self, prefix: str) -> Iterator[str]:
        for entry in self.entries(prefix):
            yield entry.path

    def entries(self, prefix: str) -> Iterator[Entry]:
        with s3_errors(self._where(prefix)):
            pages = self.client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.bucket, Prefix=self._key(prefix)):
                for item in page.get("Contents", []):
                    path = item["Key"].removeprefix(f"{self.prefix}/" if self.prefix else "")
                    yield Entry(path, int(item["Size"]), item["LastModified"].timestamp())

    def read_range(self, path: str, start: int, length: int) -> bytes:
        if length <= 0:
            return b""
        span = f"bytes={start}-{start + length - 1}"

        def request() -> bytes:
            data: bytes = self.client.get_object(**self._object(path), Range=span)["Body"].read()
            return data

        return self._call(path, request)

    def _put(self, path: str, data: bytes, **condition: str) -> str:
        checksum = base64.b64encode(hashlib.sha256(data).digest()).decode()

        def request() -> str:
            body = {"Body": data, "ChecksumSHA256": checksum}
            return str(self.client.put_object(**self._object(path), **body, **condition)["ETag"])

        try:
            return self._call(path, request)
        except ConflictError:
            stored = self.read(path)
            if stored is None or stored.data != data:
                raise
            return stored.etag  # our own earlier try had arrived, only its reply was lost

    def _call(self, path: str, request: Callable[[], T]) -> T:
        def attempt() -> T:
            with s3_errors(self._where(path)):
                return request()

        return replace(s3_requests(self.retries), retryable=is_retryable_answer).call(attempt)

    def _stored_right(self, path: str, local_file: Path, sha256: str) -> bool:
        """By the checksum that the server computed; where it tells none, by reading everything back."""
        request = {**self._object(path), "ChecksumMode": "ENABLED"}
        head = self._call(path, lambda: self.client.head_object(**request))
        if head["ContentLength"] != local_file.stat().st_size:
            return False
        whole = base64.b64encode(bytes.fromhex(sha256)).decode()
        theirs = head.get("ChecksumSHA256")
        if theirs and (
            theirs == whole or (sha256, theirs) == checksums_of_parts(local_file, self.part_bytes)
        ):
            return True
        return self._call(path, lambda: self._hash_stored(path)) == sha256

    def _hash_stored(self, path: str) -> str:
        body = self.client.get_object(**self._object(path))["Body"]
        hasher = hashlib.sha256()
        for block in body.iter_chunks(BLOCK):
            hasher.update(block)
        return hasher.hexdigest()

    def _transfers(self) -> Any:
        config = TransferConfig(
            multipart_threshold=self.part_bytes,
            multipart_chunksize=self.part_bytes,
            max_concurrency=4,
            preferred_transfer_client="classic",
        )
        return create_transfer_manager(self.client, config)

    def _key(self, path: str) -> str:
        return f"{self.prefix}/{path}" if self.prefix else path

    def _object(self, path: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self._key(path)}

    def _where(self, path: str) -> str:
        return f"{self.url}/{path}"


def _content_type(path: str, parameter: str) -> dict[str, str]:
    kind = TYPES.get(PurePosixPath(path).suffix)
    return {parameter: kind} if kind else {}


def make_client(settings: StorageSettings) -> Client:
    """Credentials come from the environment, as boto3 finds them; they are in no setting of ours."""
    config = Config(
        connect_timeout=settings.timeout_seconds,
        read_timeout=settings.timeout_seconds,
        retries={"mode": "standard", "total_max_attempts": settings.retries + 1},
        max_pool_connections=16,
        signature_version="s3v4",  # links would be signed the old way, which new servers refuse
        s3={"addressing_style": "path" if settings.endpoint_url else "auto"},
    )
    with s3_errors(settings.url):
        return boto3.session.Session().client(
            "s3", endpoint_url=settings.endpoint_url, region_name=settings.region, config=config
        )


def checksums_of_parts(file: Path, part_bytes: int) -> tuple[str, str]:
    """The sha256 of a file, and S3's checksum of an object sent in parts: the hash of its parts' hashes. Both
    from one reading, so that they are of the same bytes."""
    whole, digests = hashlib.sha256(), []
    with file.open("rb") as stream:
        while part := stream.read(part_bytes):
            whole.update(part)
            digests.append(hashlib.sha256(part).digest())
    combined = base64.b64encode(hashlib.sha256(b"".join(digests)).digest()).decode()
    return whole.hexdigest(), f"{combined}-{len(digests)}"
