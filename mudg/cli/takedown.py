"""`mudg forget`: an image leaves the index, training sets and exports, and does not come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from mudg.cli.output import settings_from, show, table_of
from mudg_core.corpus.takedowns import COLUMNS, Takedowns, read_takedowns, remember
from mudg_core.dataset.takedowns import mark_touched, touched
from mudg_core.encode.shard import METADATA, EmbeddingShard, gather_metadata
from mudg_core.errors import InputError, MissingArtifactError
from mudg_core.index.open_index import unknown_rows
from mudg_core.index.version import IndexVersion, current_version
from mudg_core.settings import Json
from mudg_core.storage import ArtifactRef, ArtifactStore
from tasks.index import removed_from

MOST, MOST_BYTES, DIGITS = 100_000, 16 << 20, 18
FIX = "give --url, --row or --file with at least one image; `mudg search --json` shows both"
KINDS = ("index", "dataset", "held-out", "model", "classifier", "report")
WHAT = {
    "index": "rows left out of a new version",
    "dataset": "marked; images left out by whatever reads it",
    "held-out": "marked; `mudg gc` takes it once nothing is kept that was judged by it",
    "model": "marked: trained on it; build the target again for one that was not",
    "classifier": "marked: its model was trained on it; stop using it",
    "report": "marked: may show it; delete copies that you have published",
}


def run_takedown(
    urls: Sequence[str],
    rows: Sequence[int],
    listed: Path | None,
    dry_run: bool,
    as_json: bool,
    file: Path | None,
    changes: list[str] | None,
) -> None:
    """The list first: if the build after it fails, nothing comes back, and the same command goes on. Marks
    once more after it: what was made meanwhile did not know of the list."""
    settings = settings_from(file, changes)
    store = ArtifactStore(settings.storage)
    asked, numbers = read_list(urls, rows, listed)
    version = _version(store)
    more = Takedowns.of(_images(store, version, numbers), asked).with_bytes(_known(store, version))
    held = _held(store, version, more)
    more = more | Takedowns(marked=touched(store, read_takedowns(store) | more))
    result: Json = {"dry_run": dry_run, "addresses": len(asked), "rows": held, "index": None}
    result["touched"] = dict(sorted(more.marked.items()))
    if not dry_run:
        mark_touched(store, remember(store, more))
        if held:
            from mudg.cli.index import rebuilt_without  # Prefect and Dask take seconds to load

            result["index"] = rebuilt_without(held, settings)
    show(result, _text(result), as_json)


def read_list(urls: Sequence[str], rows: Sequence[int], listed: Path | None) -> tuple[list[str], list[int]]:
    """What was named on the command line and in a file: a line of digits is a row, all else an address."""
    try:
        small = listed is None or listed.stat().st_size <= MOST_BYTES
        text = listed.read_text(encoding="utf-8-sig") if listed and small else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(what=f"the list cannot be read: {error}", where=str(listed)) from error
    lines = [line.strip() for line in text.splitlines()]
    asked = [url.strip() for url in (*urls, *(line for line in lines if not line.isdecimal())) if url.strip()]
    if any(line.isdecimal() and len(line) > DIGITS for line in lines) or max(rows, default=0) >= 10**DIGITS:
        raise InputError(what=f"a row has at most {DIGITS} digits", where=str(listed or "--row"), fix=FIX)
    numbers = sorted({*rows, *(int(line) for line in lines if line.isdecimal())})
    if not small or not 1 <= len(asked) + len(numbers) <= MOST or min(numbers, default=0) < 0:
        what = f"{len(asked) + len(numbers)} images to forget: at least 1 and at most {MOST:,} can be named"
        raise InputError(what=what, fix=FIX)
    return list(dict.fromkeys(asked)), numbers


def _version(store: ArtifactStore) -> IndexVersion | None:
    try:
        return current_version(store)
    except MissingArtifactError:
        return None


def _images(store: ArtifactStore, version: IndexVersion | None, rows: list[int]) -> pa.Table:
    """What is known of rows: their addresses and bytes."""
    if not rows:
        return pa.table({"row": pa.array([], pa.int64())})
    if version is None or (unknown := unknown_rows(store, version, rows)):
        some = rows if version is None else unknown
        raise InputError(what=f"rows {some[:10]} are not in the corpus of the current index", fix=FIX)
    shards = [EmbeddingShard.open(store.folder(ref)) for ref in version.embeddings]
    found = gather_metadata(shards, np.array(rows, np.int64))
    return found.select([name for name in COLUMNS if name in found.column_names])


def _known(store: ArtifactStore, version: IndexVersion | None) -> Iterator[Path]:
    """What tells the bytes of images; of those too that were screened out, as copies of one that was not."""
    for ref in version.embeddings if version else ():
        whole = store.manifest(ref).recipe.parents.get("embedding", ref)
        assert isinstance(whole, ArtifactRef)
        yield store.file(whole, METADATA)


def _held(store: ArtifactStore, version: IndexVersion | None, more: Takedowns) -> list[int]:
    """Rows of the current index that are of such images, and that it does not leave out yet."""
    if version is None:
        return []
    files = (store.file(ref, METADATA) for ref in version.embeddings)
    found = {row for path in files for row in more.rows_in(path)}
    return sorted(found - set(removed_from(store, version.index)))


def _text(result: Json) -> str:
    counts = Counter(name.partition("/")[0] for name in result["touched"])
    counts["index"] = len(result["rows"])
    lines = [(kind, f"{counts[kind]:,}", WHAT[kind]) for kind in KINDS if counts[kind]]
    parts = [table_of(lines, ("", "", "what becomes of it"))] if lines else ["nothing in the store has it"]
    if result["touched"]:
        few = [*result["touched"]][:20]
        parts.append(
            "\n".join(f"{stage}/{key[:12]}" for stage, _, key in (name.partition("/") for name in few))
        )
    if result["dry_run"]:
        parts.append("nothing was changed (--dry-run)")
    else:
        parts.append(f"current index: {result['index']}" if result["index"] else "later builds leave it out")
    return "\n\n".join(parts)
