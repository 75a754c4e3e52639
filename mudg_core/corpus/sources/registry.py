"""The corpus: which shards of which sources belong to it, in order. Row numbers are given out once: a source
that is removed takes its numbers with it, and one that is replaced gets new ones.

One artifact names all shards, and the pointer `corpus` names that artifact. Two people who add at the same
time cannot lose each other's shards: the pointer moves only from where they saw it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mudg_core.corpus.sources import KINDS
from mudg_core.corpus.sources import shard as shards
from mudg_core.corpus.sources.files import SourceFiles
from mudg_core.corpus.sources.shard import SourceFile, SourceShard
from mudg_core.errors import ConflictError, DataError, InputError
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Pointer, Recipe

STAGE, POINTER, ROLE = "corpus", "corpus", "shards"
TRIES = 10
Tell = Callable[[int], None]


@dataclass(frozen=True)
class Inspection:
    """What a source was found to have."""

    url: str
    kind: str
    parts: list[SourceFile]
    entries: int

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


@dataclass(frozen=True)
class Added:
    """What became of a source. `gone`: files that were registered before and are not there any more."""

    inspection: Inspection
    new: list[ArtifactRef] = field(default_factory=list)
    rows: int = 0
    known: int = 0
    gone: list[str] = field(default_factory=list)


def inspect(url: str, store: ArtifactStore, rows_per_shard: int, tell: Tell = lambda _: None) -> Inspection:
    """Looks at names, sizes and headers; nothing is downloaded."""
    files = SourceFiles(url, store.settings)
    entries = files.entries()
    kind = next((name for name, module in KINDS.items() if module.recognises(entries)), None)
    if kind is None:
        suffixes = sorted({entry.suffix or "no suffix" for entry in entries})[:10]
        raise InputError(
            what=f"nothing to embed among {len(entries)} files ({', '.join(suffixes) or 'none'})",
            where=files.url,
            fix="give a folder or bucket prefix with WebDataset tars, parquet files of url and caption, "
            "embeddings in clip-retrieval's layout (img_emb/ text_emb/ metadata/), or images",
        )
    parts: list[SourceFile] = []
    for part in KINDS[kind].parts(files, entries, rows_per_shard):
        parts += part
        tell(len(parts))
    if not parts:
        raise DataError(
            what=f"none of {len(entries)} files has a row", where=files.url, fix="look at the source"
        )
    return Inspection(files.url, kind, parts, len(entries))


def add(store: ArtifactStore, inspection: Inspection, rows_per_shard: int, *, replace: bool = False) -> Added:
    """Registers what is new. Adding a source again registers the files that came since; to `replace` it is to
    register all of it anew, and none of what was."""
    for _ in range(TRIES):
        pointer = store.pointer(POINTER)
        before = list(refs(store, pointer))
        end = _end(store, pointer, before)
        if replace:
            before = [ref for ref in before if _url(store, ref) != inspection.url]
        known = {(s.url, *file.identity): file for s in _load(store, before) for file in s.files}
        added = _new(store, inspection, rows_per_shard, known, end)
        if not added.new or _moved(store, pointer, [*before, *added.new], end + added.rows):
            return added
    raise _busy()


def remove(store: ArtifactStore, url: str) -> list[ArtifactRef]:
    """Takes a source out of the corpus, and returns the shards that it had. Its files are not looked at."""
    for _ in range(TRIES):
        pointer = store.pointer(POINTER)
        before = list(refs(store, pointer))
        removed = [ref for ref in before if _url(store, ref) == url]
        rest = [ref for ref in before if ref not in set(removed)]
        if not removed or _moved(store, pointer, rest, _end(store, pointer, before)):
            return removed
    raise _busy()


def registered_url(store: ArtifactStore, text: str) -> str:
    """The URL of a source that is registered, from what people type for it. It need not exist any more."""
    urls = {_url(store, ref) for ref in refs(store)}
    for candidate in (text, text.rstrip("/"), f"file://{Path(text).expanduser().absolute()}"):
        if candidate in urls:
            return candidate
    what = f"no source of the corpus is called {text[:200]!r}"
    raise InputError(what=what, where=store.url, fix="`mudg corpus status` lists them")


def _url(store: ArtifactStore, ref: ArtifactRef) -> str:
    return str(store.manifest(ref).facts["url"])


def _moved(store: ArtifactStore, pointer: Pointer | None, members: list[ArtifactRef], end: int) -> bool:
    """Whether these are the corpus now; if not, somebody else was faster, and theirs counts first."""
    try:
        store.move_pointer(POINTER, _name(store, members, end), pointer)
    except ConflictError:
        return False
    return True


def _busy() -> ConflictError:
    return ConflictError(
        what="other writers change the corpus all the time", fix="run again when nobody else adds"
    )


def refs(store: ArtifactStore, pointer: Pointer | None = None) -> Sequence[ArtifactRef]:
    """All registered shards, in order of their rows; none if nothing was ever added."""
    pointer = pointer or store.pointer(POINTER)
    if pointer is None:
        return ()
    shards_of_corpus = store.manifest(pointer.ref).recipe.parents[ROLE]
    return (shards_of_corpus,) if isinstance(shards_of_corpus, ArtifactRef) else shards_of_corpus


def _new(
    store: ArtifactStore,
    inspection: Inspection,
    rows_per_shard: int,
    known: dict[tuple[str, str, int], SourceFile],
    first_row: int,
) -> Added:
    own = {key: file for key, file in known.items() if key[0] == inspection.url}
    fresh, changed = [], []
    for part in inspection.parts:
        old = own.pop((inspection.url, *part.identity), None)
        if old is None:
            fresh.append(part)
        elif old.fingerprint != part.fingerprint:
            changed.append(part.name)
    if changed:
        what = f"{len(changed)} files have changed since they were added: {', '.join(changed[:5])}"
        fix = "put new data into new files, or register all of it anew: `mudg corpus add --replace`"
        raise DataError(what=what, where=inspection.url, fix=fix)
    new, rows = [], first_row
    for group in _grouped(fresh, rows_per_shard):
        shard = SourceShard(kind=inspection.kind, url=inspection.url, first_row=rows, files=tuple(group))
        new.append(shards.save(store, shard))
        rows += shard.rows
    missing = sorted({name for _, name, _ in own})
    return Added(inspection, new, rows - first_row, len(inspection.parts) - len(fresh), missing)


def _grouped(parts: Sequence[SourceFile], rows_per_shard: int) -> Iterator[list[SourceFile]]:
    """Small files together, in order; a large one alone."""
    group: list[SourceFile] = []
    rows = 0
    for part in parts:
        if group and rows + part.rows > rows_per_shard:
            yield group
            group, rows = [], 0
        group.append(part)
        rows += part.rows
    if group:
        yield group


def _name(store: ArtifactStore, members: list[ArtifactRef], end: int) -> ArtifactRef:
    """`end` is the first row that nobody ever had: where the last source was removed, members do not tell."""

    def make(scratch: Path) -> Facts:
        (scratch / "shards.txt").write_text("".join(f"{ref}\n" for ref in members))
        return Facts({"shards": len(members), "rows": end})

    settings = {} if end == _last(store, members) else {"inputs": {"rows": end}}
    return store.build(
        Recipe(stage=STAGE, algorithm=1, settings=settings, parents={ROLE: tuple(members)}), make
    )


def _load(store: ArtifactStore, members: Sequence[ArtifactRef]) -> Iterator[SourceShard]:
    return (shards.load(store, ref) for ref in members)


def _end(store: ArtifactStore, pointer: Pointer | None, members: Sequence[ArtifactRef]) -> int:
    """The first row that nobody ever had."""
    stated = int(str(store.manifest(pointer.ref).facts["rows"])) if pointer else 0
    return max(stated, _last(store, members))


def _last(store: ArtifactStore, members: Sequence[ArtifactRef]) -> int:
    """The row behind the last one."""
    if not members:
        return 0
    facts = store.manifest(members[-1]).facts
    return int(str(facts["first_row"])) + int(str(facts["rows"]))
