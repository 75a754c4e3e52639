"""Verified files on this machine's disk: nothing is read before its checksum has been seen to match.

A local store's files are used where they lie. Those of a remote store are downloaded once, into a cache
that is addressed by content, so two artifacts with the same file share one copy.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path

from mudg_core.errors import ChecksumError, MissingArtifactError
from mudg_core.storage.manifest import FileEntry, Manifest
from mudg_core.storage.objects import Objects, sha256_of
from mudg_core.storage.objects_local import disk_errors

DOWNLOADS = 2  # a transfer that was cut short deserves a second try; a damaged object stays damaged


class LocalCache:
    def __init__(self, objects: Objects, cache: Path) -> None:
        self.objects, self.cache = objects, cache
        self._seen: dict[Path, tuple[str, int, int, int]] = {}

    def get(self, manifest: Manifest, entry: FileEntry, *, fresh: bool = False) -> Path:
        """Raises ChecksumError for wrong bytes and MissingArtifactError for none. `fresh` trusts neither
        the cache nor what was verified before, and looks at what is stored now."""
        path = manifest.path(entry.name)
        local = self.objects.local_path(path)
        if local is None:
            return self._fetch(path, entry, fresh)
        if fresh:
            self._seen.pop(local, None)
        with disk_errors(local):
            if not local.is_file():
                raise MissingArtifactError(what="a file named by a manifest is missing", where=str(local))
            self._require(local, entry, str(local))
        return local

    def folder(self, manifest: Manifest) -> Path:
        """All files of an artifact under their own names, for libraries that want a directory."""
        return self.cache / "folders" / manifest.key / manifest.circumstances.attempt

    def link_into(self, folder: Path, name: str, copy: Path) -> None:
        target = folder / name
        with disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{uuid.uuid4().hex}")
            os.link(copy, temporary)
            temporary.replace(target)
            temporary.unlink(missing_ok=True)  # rename does nothing if both already are the same file

    def _fetch(self, path: str, entry: FileEntry, fresh: bool) -> Path:
        copy = self.cache / "sha256" / entry.sha256[:2] / entry.sha256 / Path(entry.name).name
        with disk_errors(copy):
            if not fresh and copy.is_file() and self._matches(copy, entry):
                return copy
            copy.parent.mkdir(parents=True, exist_ok=True)
            self._download(path, entry, copy)
        return copy

    def _download(self, path: str, entry: FileEntry, copy: Path) -> None:
        """Under a name of its own until verified: readers of the cache never see half a file."""
        temporary = copy.with_name(f".{uuid.uuid4().hex}")
        try:
            for last in [False] * (DOWNLOADS - 1) + [True]:
                self.objects.download(path, temporary)
                if last or self._matches(temporary, entry):
                    break
            self._require(temporary, entry, f"{self.objects.url}/{path}")
            temporary.replace(copy)
        finally:
            self._seen.pop(temporary, None)
            temporary.unlink(missing_ok=True)
            with suppress(OSError):
                copy.parent.rmdir()  # only if empty: nothing stays behind after a failure

    def _require(self, file: Path, entry: FileEntry, where: str) -> None:
        if not self._matches(file, entry):
            raise ChecksumError(what=f"the bytes of {entry.name} differ from their checksum", where=where)

    def _matches(self, file: Path, entry: FileEntry) -> bool:
        """Hashes a file once per process, for as long as its size, time and inode stay the same."""
        status = file.stat()
        seen = (entry.sha256, status.st_size, status.st_mtime_ns, status.st_ino)
        if self._seen.get(file) == seen:
            return True
        if status.st_size != entry.size or sha256_of(file) != entry.sha256:
            return False
        self._seen[file] = seen
        return True
