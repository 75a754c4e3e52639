"""What lies in a store, as garbage collection sees it: artifacts by place, and everything that is none.

One listing, and every manifest read once. Only what decides is kept of a manifest, so that a store with a
million artifacts can be looked at in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mudg_core.errors import ChecksumError
from mudg_core.storage import layout
from mudg_core.storage.manifest import Manifest
from mudg_core.storage.objects import Entry, Objects

READERS = 16
# Where what belongs to no artifact lies, and how many parts of its path are its name, the prefix among them.
ORPHANS = {
    "checkpoint": (layout.CHECKPOINTS, 3),
    "quarantine": (layout.QUARANTINE, 4),
    "probe": (layout.PROBES, 2),
    "submission": (layout.SUBMISSIONS, 3),
    "refused spec": (layout.REFUSED, 2),
}


@dataclass(frozen=True)
class Item:
    """An artifact; `name` and `parents` are places (`stage/key`)."""

    name: str
    attempt: str
    created: datetime
    size: int
    parents: tuple[str, ...]

    @property
    def stage(self) -> str:
        return self.name.partition("/")[0]


@dataclass
class Orphan:
    """Files that belong together and to no artifact: how many bytes, and when the youngest was written."""

    size: int = 0
    modified: float = 0.0
    paths: list[str] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        self.size += entry.size
        self.modified = max(self.modified, entry.modified)
        self.paths.append(entry.path)


@dataclass(frozen=True)
class Survey:
    """`attempts` by (place, attempt), those of artifacts left out; other orphans by their kind and name.
    `damaged`: places whose manifest cannot be read; the next reader sets it aside. `foreign`: what others
    have put beside, by its path."""

    items: dict[str, Item]
    damaged: frozenset[str]
    attempts: dict[tuple[str, str], Orphan]
    orphans: dict[str, dict[str, Orphan]]
    foreign: dict[str, Orphan]


def survey(objects: Objects) -> Survey:
    """Lists first and reads manifests then: what is committed meanwhile is seen as committed."""
    attempts: dict[tuple[str, str], Orphan] = {}
    foreign: dict[str, Orphan] = {}
    named: set[str] = set()
    for entry in _own(objects, layout.ARTIFACTS, foreign):
        _, stage, key, *rest = entry.path.split("/")
        named.add(f"{stage}/{key}")
        if len(rest) > 2:
            attempts.setdefault((f"{stage}/{key}", rest[1]), Orphan()).add(entry)
    read = dict(zip(sorted(named), _read(objects, sorted(named)), strict=True))
    items = {name: item for name, item in read.items() if isinstance(item, Item)}
    for item in items.values():
        attempts.pop((item.name, item.attempt), None)
    damaged = frozenset(name for name, item in read.items() if item == "damaged")
    orphans = {kind: _orphans(objects, *where, foreign) for kind, where in ORPHANS.items()}
    return Survey(items, damaged, attempts, orphans, foreign)


def read_manifest(objects: Objects, name: str) -> Manifest | None:
    """As it is: nothing is set aside here, as a dry run must change nothing. A manifest of a newer release
    is an error, for nobody here can tell what it needs."""
    stage, _, key = name.partition("/")
    path = layout.manifest(stage, key)
    stored = objects.read(path)
    return Manifest.from_bytes(stored.data, layout.uri(objects.url, path)) if stored else None


def _read(objects: Objects, names: Iterable[str]) -> Iterator[Item | str]:
    """Many at a time: on S3 each takes a round trip."""

    def one(name: str) -> Item | str:
        try:
            manifest = read_manifest(objects, name)
        except ChecksumError:
            return "damaged"
        return _item(manifest) if manifest else "missing"

    with ThreadPoolExecutor(READERS) as pool:
        yield from pool.map(one, names)


def _item(manifest: Manifest) -> Item:
    return Item(
        manifest.ref.place,
        manifest.circumstances.attempt,
        moment(manifest.circumstances.created),
        manifest.size,
        tuple(dict.fromkeys(parent.place for parent in manifest.recipe.all_parents())),
    )


def moment(text: str) -> datetime:
    """A date as we write them. One that nobody can read counts as now: what bears it is left alone."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC)
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _own(objects: Objects, prefix: str, foreign: dict[str, Orphan]) -> Iterator[Entry]:
    """What we have written below a prefix; all else is noted in `foreign`, and left alone."""
    for entry in objects.entries(prefix):
        if layout.is_own(entry.path):
            yield entry
        else:
            foreign.setdefault(entry.path, Orphan()).add(entry)


def _orphans(objects: Objects, prefix: str, depth: int, foreign: dict[str, Orphan]) -> dict[str, Orphan]:
    """By the first `depth` parts of their paths, without the prefix."""
    orphans: dict[str, Orphan] = {}
    for entry in _own(objects, prefix, foreign):
        orphans.setdefault("/".join(entry.path.split("/")[1:depth]), Orphan()).add(entry)
    return orphans
