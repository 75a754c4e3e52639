"""Files on this machine's disk: verified copies of what the store holds, and folders for unfinished work.

Nothing is read before its checksum was verified. A local store's files are used where they lie. Those of a
remote store are downloaded once, into a cache that is addressed by content, so two artifacts with the same
file share one copy.

A scratch folder is always removed, or swept later if its process died. It is locked while it is in use: the
kernel drops the lock of a dead process, so the sweep can tell a build that takes two days from one that was
killed two days ago.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mudg_core.errors import ChecksumError, MissingArtifactError
from mudg_core.storage.manifest import FileEntry, Manifest
from mudg_core.storage.objects import Objects, sha256_of
from mudg_core.storage.objects_local import disk_errors

DOWNLOADS = 2  # a transfer that was cut short deserves a second try; a damaged object stays damaged
STALE_SECONDS = 24 * 3600.0


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


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    folder = parent / f"build-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network disks cannot lock a folder; then nobody sweeps it either
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path, older_than: float = STALE_SECONDS) -> None:
    """Removes what dead processes left behind; never fails, for it is only housekeeping."""
    if not parent.is_dir():
        return
    for path in parent.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < older_than:
                continue
            if not path.is_dir():
                path.unlink(missing_ok=True)
            elif not _in_use(path):
                shutil.rmtree(path, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
