"""A store in a folder of the local disk, with the same guarantees as a good S3 server.

Content is written to a temporary file, forced to disk and only then given its name: a link creates (it
fails if the name is taken), a rename replaces. So a final name never shows half a file, not even after a
power cut. Replacing and deleting happen under a file lock, because a rename cannot be conditional.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mudg_core.errors import ChecksumError, ConflictError, MissingArtifactError, StorageError
from mudg_core.storage.objects import Entry, Stored, sha256_of

SCRATCH = "scratch"  # unfinished work; never named by a manifest, so it may always be swept
LINK_TRIES = 20
FULL = (errno.ENOSPC, errno.EDQUOT)


class LocalObjects:
    """See `Objects`."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()

    @property
    def url(self) -> str:
        return f"file://{self.root}"

    def local_path(self, path: str) -> Path:
        return self.root / path

    def link(self, path: str, seconds: int) -> str:
        return self.local_path(path).as_uri()

    def put_new(self, path: str, data: bytes) -> str:
        with disk_errors(self.root / path), self._temporary() as temporary:
            _write(temporary, data)
            self._link(temporary, path)
        return _etag(data)

    def read(self, path: str) -> Stored | None:
        with disk_errors(self.root / path):
            try:
                data = (self.root / path).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None
        return Stored(data, _etag(data))

    def replace(self, path: str, data: bytes, expected_etag: str | None) -> str:
        if expected_etag is None:
            return self.put_new(path, data)
        with disk_errors(self.root / path), self._lock(), self._temporary() as temporary:
            self._expect(path, expected_etag)
            _write(temporary, data)
            temporary.replace(self.root / path)
            _sync_folder((self.root / path).parent)
        return _etag(data)

    def upload(self, path: str, local_file: Path, sha256: str) -> None:
        """Links the file into place if it is ours alone and on the same disk; else copies it."""
        with disk_errors(self.root / path):
            if _can_link(local_file, self.root):
                _seal(local_file)
                self._link(local_file, path)
            else:
                self._copy(path, local_file, sha256)

    def download(self, path: str, local_file: Path) -> None:
        with disk_errors(local_file), self._missing_file(path):
            shutil.copyfile(self.root / path, local_file)

    def exists(self, path: str) -> bool:
        return (self.root / path).is_file()

    def delete(self, path: str, expected_etag: str | None = None) -> None:
        with disk_errors(self.root / path), self._lock():
            if expected_etag is not None:
                self._expect(path, expected_etag)
            (self.root / path).unlink(missing_ok=True)
            self._prune((self.root / path).parent)

    def list(self, prefix: str) -> Iterator[str]:
        folder = self.root / prefix.rpartition("/")[0]
        for parent, folders, files in os.walk(folder):
            folders.sort()
            for name in sorted(files):
                path = (Path(parent) / name).relative_to(self.root).as_posix()
                if path.startswith(prefix):
                    yield path

    def entries(self, prefix: str) -> Iterator[Entry]:
        """As old as its name: a file that was written long ago and linked into place now is new."""
        for path in self.list(prefix):
            with suppress(FileNotFoundError):  # gone since it was listed, or a link to nowhere
                status = (self.root / path).stat()
                yield Entry(path, status.st_size, max(status.st_mtime, status.st_ctime))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        with disk_errors(self.root / path), self._missing_file(path), (self.root / path).open("rb") as stream:
            stream.seek(start)
            return stream.read(length)

    def _where(self, path: str) -> str:
        return f"{self.url}/{path}"

    @contextmanager
    def _missing_file(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise MissingArtifactError(what="the file is not there", where=self._where(path)) from error

    def _copy(self, path: str, local_file: Path, sha256: str) -> None:
        with self._temporary() as temporary:
            shutil.copyfile(local_file, temporary)
            if sha256_of(temporary) != sha256:
                raise ChecksumError(what="the file changed while it was stored", where=str(local_file))
            _seal(temporary)
            self._link(temporary, path)

    def _link(self, source: Path, path: str) -> None:
        """Gives `source` its final name unless taken; again if `_prune` took the folder away meanwhile."""
        target = self.root / path
        for last in [False] * LINK_TRIES + [True]:
            try:
                _make_folders(target.parent)
                os.link(source, target)
                break
            except FileExistsError as error:
                raise ConflictError(what="the object already exists", where=self._where(path)) from error
            except FileNotFoundError:
                if last or not source.exists():
                    raise
        _sync_folder(target.parent)

    def _expect(self, path: str, etag: str) -> None:
        stored = self.read(path)
        if stored is None or stored.etag != etag:
            raise ConflictError(what="another process changed the object", where=self._where(path))

    def _prune(self, folder: Path) -> None:
        """Removes folders that became empty, as an object store would have none."""
        with suppress(OSError):
            while folder != self.root:
                folder.rmdir()
                folder = folder.parent

    @contextmanager
    def _temporary(self) -> Iterator[Path]:
        path = self.root / SCRATCH / f"put-{uuid.uuid4().hex}"
        _make_folders(path.parent)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        _make_folders(self.root)
        with (self.root / ".lock").open("ab") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)  # released by close, and by the kernel if we die
            yield


@contextmanager
def disk_errors(where: Path, *, only_full: bool = False) -> Iterator[None]:
    """Turns an OSError into one that says what to do."""
    try:
        yield
    except OSError as error:
        if only_full and error.errno not in FULL:
            raise
        raise disk_error(error, str(where)) from error


def disk_error(error: OSError, where: str) -> StorageError:
    full = error.errno in FULL
    return StorageError(
        what="the disk is full" if full else f"disk error: {error.strerror or error}",
        where=where,
        fix="free some space, or set storage.url (and storage.cache_dir) to a larger disk, and run again"
        if full
        else "check that the folder exists, is mounted and is writable for this user",
    )


def _etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _can_link(file: Path, root: Path) -> bool:
    """A file with other names is copied: whoever holds them could change the artifact through them."""
    _make_folders(root)
    status = file.stat()
    return status.st_nlink == 1 and status.st_dev == root.stat().st_dev


def _seal(file: Path) -> None:
    """On disk for good, and read-only: artifacts are written once."""
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
    file.chmod(stat.S_IMODE(file.stat().st_mode) & ~0o222)


def _make_folders(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
