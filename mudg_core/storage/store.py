"""Artifacts by content: find one, build one exactly once, read one that is what it claims to be.

The commit protocol (one line of code each in `build` and `_commit`): work in scratch, upload under an
attempt of one's own, verify, then create the manifest on condition that there is none. Until the manifest
is there nothing is visible; once it is there it never changes. Whoever comes second adopts what is there.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from mudg_core.errors import ChecksumError, ConflictError, MissingArtifactError, MudgError, StorageError
from mudg_core.settings import StorageSettings
from mudg_core.storage import browse, layout, pointers
from mudg_core.storage.build_info import describe, now
from mudg_core.storage.checkpoints import Checkpoints
from mudg_core.storage.gc.marks import GcMarks
from mudg_core.storage.local_cache import LocalCache, scratch_folder, sweep
from mudg_core.storage.manifest import ArtifactRef, Facts, FileEntry, Manifest, Recipe
from mudg_core.storage.objects import Objects, Stored, check_conditional_puts, open_objects
from mudg_core.storage.objects_local import SCRATCH, disk_errors
from mudg_core.storage.pointers import Pointer

REBUILD = "run again: the artifact will be rebuilt"


class ArtifactStore:
    """One store. Safe to share between threads, and to send to other processes: it carries settings only."""

    def __init__(self, settings: StorageSettings, objects: Objects | None = None) -> None:
        self.settings = settings
        self.objects = objects or open_objects(settings)
        cache = Path(settings.cache_dir).expanduser().absolute()
        self._cache = LocalCache(self.objects, cache)
        self._gc_marks = GcMarks(self.objects)
        self._scratch = self.objects.local_path(SCRATCH) or cache / SCRATCH
        sweep(self._scratch)

    def __reduce__(self) -> tuple[object, ...]:
        settings = self.settings.model_copy(
            update={"url": self.url, "cache_dir": str(self._cache.cache)}  # absolute: cwd differs elsewhere
        )
        return ArtifactStore, (settings,)

    @property
    def url(self) -> str:
        return self.objects.url

    def check(self) -> None:
        """Refuses a store that ignores conditional puts; to be called once, before any work."""
        check_conditional_puts(self.objects)

    # -- building -----------------------------------------------------------------------------------------

    def find(self, recipe: Recipe) -> ArtifactRef | None:
        """The artifact of a recipe, if it was ever committed. Looks at the manifest only. One that garbage
        collection has condemned stays; one that it is deleting is not there."""
        manifest = self._read_manifest(recipe.stage, recipe.key)
        return manifest.ref if manifest and self._try_keep(manifest) else None

    def build(self, recipe: Recipe, make: Callable[[Path], Facts]) -> ArtifactRef:
        """Adopts the artifact of a recipe, or lets `make` leave its files in a folder and commits them."""
        ref = self.find(recipe) or self._build(recipe, make)
        with suppress(MudgError):  # best effort: the artifact is there, so nobody reads them again
            self.checkpoints(
                recipe
            ).clear()  # also of one that was there: its maker may have died before this
        return ref

    def _try_keep(self, manifest: Manifest) -> bool:
        """Helps to delete what is being deleted, or the way would not be free to make it again."""
        if self._gc_marks.try_keep(manifest):
            return True
        self.withdraw(manifest)
        return False

    def withdraw(self, manifest: Manifest) -> None:
        """Takes this very manifest away, so that nothing finds the artifact; its files stay."""
        if stored := self._stored(manifest):
            with suppress(ConflictError):
                self.objects.delete(_path(manifest), expected_etag=stored.etag)

    def temporary(self) -> AbstractContextManager[Path]:
        """A folder for copies of what lies elsewhere, on the disk where artifacts are made; removed after
        use, also after a crash."""
        return scratch_folder(self._scratch)

    def checkpoints(self, recipe: Recipe) -> Checkpoints:
        """Where the maker of an artifact keeps how far it has come; gone once the artifact is there."""
        return Checkpoints(self.objects, recipe.stage, recipe.key)

    def _build(self, recipe: Recipe, make: Callable[[Path], Facts]) -> ArtifactRef:
        with disk_errors(self._scratch, only_full=True), scratch_folder(self._scratch) as folder:
            started = time.monotonic()
            facts = make(folder)
            manifest = describe(recipe, facts, folder, time.monotonic() - started)
            self._upload(manifest, folder)
        return self._commit(manifest)

    def _upload(self, manifest: Manifest, folder: Path) -> None:
        try:
            for entry in manifest.files:
                self.objects.upload(manifest.path(entry.name), folder / entry.name, entry.sha256)
        except BaseException:
            self._drop(manifest)
            raise

    def _commit(self, manifest: Manifest) -> ArtifactRef:
        """Own files are dropped only when somebody else has won for certain. After an error that leaves it
        open (a lost reply), they stay: the manifest may have arrived, and would name them."""
        try:
            self.objects.put_new(_path(manifest), manifest.to_bytes())
        except ConflictError as conflict:
            winner = self.find(manifest.recipe)
            if winner is None:  # set aside between the two calls; the caller's retry starts afresh
                raise StorageError(what=conflict.what, where=conflict.where, fix="run again") from conflict
            self._drop(manifest)
            return winner
        return manifest.ref

    def _drop(self, manifest: Manifest) -> None:
        """Best effort: what is left is invisible, and garbage collection finds it."""
        for entry in manifest.files:
            with suppress(StorageError):
                self.objects.delete(manifest.path(entry.name))

    # -- reading ------------------------------------------------------------------------------------------

    def manifest(self, ref: ArtifactRef) -> Manifest:
        manifest = self._read_manifest(ref.stage, ref.key)
        if manifest is None:
            raise self._missing(ref)
        if manifest.digest != ref.digest:
            what = f"artifact {ref} was rebuilt and came out differently"
            fix = "run again: what was made from the old one will be made anew"
            raise ChecksumError(what=what, where=self.uri(ref), fix=fix)
        return manifest

    def _missing(self, ref: ArtifactRef) -> MissingArtifactError:
        what = f"artifact {ref} is not in the store"
        return MissingArtifactError(what=what, where=self.uri(ref), fix="run the stage again")

    def file(self, ref: ArtifactRef, name: str) -> Path:
        """A verified file on this machine's disk. A damaged artifact is set aside before the error."""
        manifest = self.manifest(ref)
        entry = manifest.entry(name)
        if entry is None:
            what = f"artifact {ref} has no file {name!r}"
            fix = "it has: " + ", ".join(sorted(entry.name for entry in manifest.files)[:20])
            raise MissingArtifactError(what=what, where=self.uri(ref), fix=fix)
        return self._verified(manifest, entry)

    def files(self, ref: ArtifactRef) -> dict[str, Path]:
        manifest = self.manifest(ref)
        return {entry.name: self._verified(manifest, entry) for entry in manifest.files}

    def folder(self, ref: ArtifactRef) -> Path:
        """All files, verified, in one directory under their own names (read-only by agreement)."""
        manifest = self.manifest(ref)
        attempt = layout.attempt_folder(ref.stage, ref.key, manifest.circumstances.attempt)
        copies = {entry.name: self._verified(manifest, entry) for entry in manifest.files}
        if local := self.objects.local_path(attempt):
            return local
        folder = self._cache.folder(manifest)
        for name, copy in copies.items():
            self._cache.link_into(folder, name, copy)
        return folder

    def verify(self, ref: ArtifactRef) -> None:
        """Reads every byte of an artifact, whatever was verified before; sets it aside if damaged."""
        manifest = self.manifest(ref)
        for entry in manifest.files:
            self._verified(manifest, entry, fresh=True)

    def quarantine(self, ref: ArtifactRef, reason: str) -> None:
        """Moves the manifest aside, so that the next run builds the artifact again."""
        self._quarantine(self.manifest(ref), reason)

    def _verified(self, manifest: Manifest, entry: FileEntry, *, fresh: bool = False) -> Path:
        try:
            return self._cache.get(manifest, entry, fresh=fresh)
        except (ChecksumError, MissingArtifactError) as error:
            self._quarantine(manifest, f"{entry.name}: {error.what}")
            parents = ", ".join(str(parent) for parent in manifest.recipe.all_parents()) or "no parents"
            what = f"artifact {manifest.ref} (made from {parents}): {error.what}"
            raise type(error)(what=what, where=error.where, fix=REBUILD) from error

    def _quarantine(self, manifest: Manifest, reason: str) -> None:
        if stored := self._stored(manifest):
            self._set_aside(manifest.recipe.stage, manifest.key, stored, reason)

    def _set_aside(self, stage: str, key: str, stored: Stored, reason: str) -> None:
        """Byte for byte, so that a damaged artifact can be both rebuilt and looked into. Copy first, delete
        second: killed in between, the copy is there twice and nothing is lost. A second reader that meets the
        same fault at the same time does the same, and neither minds the other."""
        token = hashlib.sha256(stored.data).hexdigest()[:16]
        note = json.dumps({"reason": reason, "quarantined": now()}, sort_keys=True, indent=1).encode()
        with suppress(ConflictError):
            self.objects.put_new(layout.quarantine(stage, key, token, "manifest.json"), stored.data)
        with suppress(ConflictError):
            self.objects.put_new(layout.quarantine(stage, key, token, "reason.json"), note)
        with suppress(ConflictError):
            self.objects.delete(layout.manifest(stage, key), expected_etag=stored.etag)

    def _stored(self, manifest: Manifest) -> Stored | None:
        """This very manifest as it is stored: by now another may have been built in its place."""
        stored = self.objects.read(_path(manifest))
        return stored if stored and stored.data == manifest.to_bytes() else None

    def _read_manifest(self, stage: str, key: str) -> Manifest | None:
        path = layout.manifest(stage, key)
        stored = self.objects.read(path)
        if stored is None:
            return None
        where = layout.uri(self.url, path)
        try:
            manifest = Manifest.from_bytes(stored.data, where)
            if (manifest.recipe.stage, manifest.key) != (stage, key):
                raise ChecksumError(what="the manifest is that of another artifact", where=where, fix=REBUILD)
        except ChecksumError as error:
            self._set_aside(stage, key, stored, error.what)
            raise
        return manifest

    # -- pointers and people ------------------------------------------------------------------------------

    def pointer(self, name: str) -> Pointer | None:
        return pointers.read(self.objects, name)

    def move_pointer(
        self, name: str, ref: ArtifactRef, expected: Pointer | None, *, withdraw: bool = False
    ) -> Pointer:
        """Compare-and-swap: ConflictError if somebody else moved it since `expected` was read. `withdraw`
        marks what it leaves as no good."""
        if not self._try_keep(self.manifest(ref)):  # a pointer to nothing helps nobody
            raise self._missing(ref)
        return pointers.move(self.objects, name, ref, expected, withdraw=withdraw)

    def at(self, stage: str, key: str) -> ArtifactRef:
        """The artifact at a full key."""
        manifest = self._read_manifest(stage, key)
        if manifest is None:
            raise MissingArtifactError(what=f"there is no artifact {stage}/{key}", where=self.url)
        return manifest.ref

    def resolve(self, text: str) -> ArtifactRef:
        """For people: `stage/beginning-of-key`, a URI inside the artifact, or the name of a pointer."""
        return browse.resolve(self, text)

    def lineage(self, ref: ArtifactRef) -> Iterator[Manifest]:
        """The manifests that led to an artifact and its own: parents first, each once."""
        return browse.lineage(self, ref)

    def link(self, ref: ArtifactRef, name: str) -> str:
        """What a browser opens a file of it by (`storage.browse_url`). Without that, a link to S3 is signed:
        whoever has it can read the file until it expires, so show it and write it down nowhere."""
        path = self.manifest(ref).path(name)
        if self.settings.browse_url:
            return layout.uri(self.settings.browse_url, path)
        return self.objects.link(path, round(3600 * self.settings.link_hours))

    def uri(self, ref: ArtifactRef, name: str | None = None) -> str:
        """Where an artifact's manifest, or one of its files, lies."""
        if name is None:
            return layout.uri(self.url, layout.manifest(ref.stage, ref.key))
        return layout.uri(self.url, self.manifest(ref).path(name))


def _path(manifest: Manifest) -> str:
    return layout.manifest(manifest.recipe.stage, manifest.key)
