"""`mudg gc`, `mudg takedown` and `mudg settings`: what leaves the store, and the settings of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from mudg.cli.command import Output, command
from mudg.cli.output import age, console, say, size, table_of
from mudg_core.errors import InputError, MissingArtifactError

if TYPE_CHECKING:
    import pyarrow as pa

    from mudg_core.corpus.takedowns import Takedowns
    from mudg_core.index.version import IndexVersion
    from mudg_core.settings import Json, Settings
    from mudg_core.storage import ArtifactStore
    from mudg_core.storage.gc.collect import Collection

app = typer.Typer()
DONE = {
    "keep": "kept",
    "wait": "marked for deletion before",
    "condemn": "marked for deletion now",
    "delete": "deleted",
}
PLANNED = DONE | {"condemn": "would be marked for deletion", "delete": "would be deleted"}
MOST, MOST_BYTES, DIGITS = 100_000, 16 << 20, 18
FIX = "give --url, --row or --file with at least one image; `mudg search --json` shows both"
WHAT = {
    "index": "rows left out of a new version",
    "dataset": "marked; images left out by whatever reads it",
    "held-out": "marked; `mudg gc` deletes it once nothing is kept that was judged by it",
    "model": "marked: trained on it; build the target again for one that was not",
    "classifier": "marked: its model was trained on it; stop using it",
    "report": "marked: may show it; delete copies that you have published",
}
Urls = Annotated[list[str] | None, Option(help="Address of an image; may be repeated.")]
Rows = Annotated[
    list[int] | None, Option(help="Corpus row, as `mudg search --json` shows it; may be repeated.")
]
Listed = Annotated[Path | None, Option("--file", help="A text file: one address or row number a line.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show what would change, and change nothing.")]


@command(app, "gc")
def gc(
    settings: Settings,
    store: ArtifactStore,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show what would be deleted, and why the rest stays.")
    ] = False,
    older_than: Annotated[
        str | None, Option(metavar="AGE", help="30d or 12h, instead of the days in the settings.")
    ] = None,
) -> Output:
    """Delete what nothing needs any more, in two steps: marked for deletion now, deleted by a later run.

    Kept are the current index and the versions before it, whatever a run is using, reports, models and
    datasets for as long as the settings say (`gc.*`), and all that these were made from. What is marked for
    deletion is deleted after `gc.grace_hours`, unless a run uses it meanwhile.

    Example: `mudg gc --dry-run`
    """
    from mudg_core.storage.gc.collect import collect_garbage
    from mudg_core.storage.gc.retention import ACTIONS

    term = age(older_than) if older_than else None
    with console.status("looking at everything in the store …"):
        done = collect_garbage(store, settings.gc, dry_run=dry_run, older_than=term)
    fields = ("kind", "action", "why", "count", "bytes")
    names = {action: sorted(v.name for v in done.verdicts if v.action == action) for action in ACTIONS[1:]}
    lines = [dict(zip(fields, line, strict=True)) for line in done.lines()]
    body = {"dry_run": done.dry_run, "lines": lines, "sums": done.sums(), **names}
    return Output(body, _gc_text(done, settings.gc.grace_hours))


def _gc_text(done: Collection, grace: float) -> str:
    words, sums = PLANNED if done.dry_run else DONE, done.sums()
    rows = [
        (kind, words[action], f"{count:,}", size(number), why)
        for kind, action, why, count, number in done.lines()
    ]
    if not rows:
        return "the store is empty"
    total = [
        f"{word}: {sums[action]['count']:,}, {size(sums[action]['bytes'])}"
        for action, word in words.items()
        if sums[action]["count"]
    ]
    if sums["condemn"]["count"] or sums["wait"]["count"]:
        total.append(f"a `mudg gc` {grace:g} h after it was marked deletes what no run used meanwhile")
    return "\n\n".join([table_of(rows, ("kind", "", "number", "bytes", "why")), "\n".join(total)])


@command(app, "settings")
def show_settings(settings: Settings) -> Output:
    """List every setting with its value.

    Later wins: profile, settings file, `MUDG_AREA__NAME` in the environment, `--set area.name=value`.

    Example: `mudg settings --set index.cells=512`
    """
    import yaml

    tree = settings.model_dump(mode="json")
    return Output(tree, yaml.safe_dump(tree, sort_keys=False))


@command(app, "takedown")
def takedown(
    settings: Settings,
    store: ArtifactStore,
    url: Urls = None,
    row: Rows = None,
    listed: Listed = None,
    dry_run: DryRun = False,
) -> Output:
    """Take images down: out of the index, training sets and exports, and out of later builds.

    The index gets a new version without them, which becomes current. Training sets leave them out from now
    on, and models that were trained on one are marked in `mudg show` and `mudg lineage`. An image is known by
    its address and its bytes, so it does not come back with new shards. To leave rows out of the index alone,
    without marking anything: `mudg index remove`; to remove a whole source: `mudg corpus remove`.

    Example: `mudg takedown --url https://example.org/me.jpg --dry-run`
    """
    from mudg_core.corpus.takedowns import Takedowns, read_takedowns, remember
    from mudg_core.dataset.takedowns import mark_touched, touched

    urls, rows = read_list(url or (), row or (), listed)
    version = _version(store)
    more = Takedowns.of(_images(store, version, rows), urls).with_bytes(_metadata_files(store, version))
    indexed = _rows_in_index(store, version, more)
    more = more | Takedowns(marked=touched(store, read_takedowns(store) | more))
    result: Json = {"dry_run": dry_run, "addresses": len(urls), "rows": indexed, "index": None}
    result["touched"] = dict(sorted(more.marked.items()))
    if not dry_run:
        # The list first: if the build after it fails, no image comes back, and the same command goes on.
        mark_touched(store, remember(store, more))
        if indexed:
            from mudg.cli.index import rebuilt_without

            result["index"] = rebuilt_without(indexed, settings)
    return Output(result, _takedown_text(result))


@command(app, "forget", hidden=True)
def forget(
    settings: Settings,
    store: ArtifactStore,
    url: Urls = None,
    row: Rows = None,
    listed: Listed = None,
    dry_run: DryRun = False,
) -> Output:
    """The earlier name of `mudg takedown`. Example: `mudg forget --row 4711`"""
    say("`mudg forget` is now called `mudg takedown`", "yellow")
    return takedown(settings, store, url, row, listed, dry_run)


def read_list(urls: Sequence[str], rows: Sequence[int], listed: Path | None) -> tuple[list[str], list[int]]:
    """The images of the command line and of a file: a line of digits is a row, all else an address."""
    try:
        small = listed is None or listed.stat().st_size <= MOST_BYTES
        text = listed.read_text(encoding="utf-8-sig") if listed and small else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(what=f"the list cannot be read: {error}", where=str(listed)) from error
    lines = [line.strip() for line in text.splitlines()]
    named = [url.strip() for url in (*urls, *(line for line in lines if not line.isdecimal())) if url.strip()]
    if any(line.isdecimal() and len(line) > DIGITS for line in lines) or max(rows, default=0) >= 10**DIGITS:
        raise InputError(what=f"a row has at most {DIGITS} digits", where=str(listed or "--row"), fix=FIX)
    numbers = sorted({*rows, *(int(line) for line in lines if line.isdecimal())})
    if min(numbers, default=0) < 0:
        raise InputError(what=f"row {min(numbers)}: the first row is 0", where="--row", fix=FIX)
    if not small or not 1 <= len(named) + len(numbers) <= MOST:
        what = f"{len(named) + len(numbers)} images to take down: between 1 and {MOST:,} can be named"
        raise InputError(what=what, fix=FIX)
    return list(dict.fromkeys(named)), numbers


def _version(store: ArtifactStore) -> IndexVersion | None:
    from mudg_core.index.version import current_version

    try:
        return current_version(store)
    except MissingArtifactError:
        return None


def _images(store: ArtifactStore, version: IndexVersion | None, rows: list[int]) -> pa.Table:
    """Addresses and bytes of rows, as far as they are known."""
    import numpy as np
    import pyarrow as pa

    from mudg_core.corpus.takedowns import COLUMNS
    from mudg_core.encode.shard import EmbeddingShard, gather_metadata
    from mudg_core.index.version import unknown_rows

    if not rows:
        return pa.table({"row": pa.array([], pa.int64())})
    if version is None or (unknown := unknown_rows(store, version, rows)):
        some = rows if version is None else unknown
        raise InputError(what=f"rows {some[:10]} are not in the corpus of the current index", fix=FIX)
    shards = [EmbeddingShard.open(store.folder(ref)) for ref in version.embeddings]
    images = gather_metadata(shards, np.array(rows, np.int64))
    return images.select([name for name in COLUMNS if name in images.column_names])


def _metadata_files(store: ArtifactStore, version: IndexVersion | None) -> Iterator[Path]:
    """With the bytes of all images; of those too that were screened out, as copies of one that was not."""
    from mudg_core.encode.shard import METADATA
    from mudg_core.storage import ArtifactRef

    for ref in version.embeddings if version else ():
        whole = store.manifest(ref).recipe.parents.get("embedding", ref)
        assert isinstance(whole, ArtifactRef)
        yield store.file(whole, METADATA)


def _rows_in_index(store: ArtifactStore, version: IndexVersion | None, more: Takedowns) -> list[int]:
    """Rows of the current index that are of such images, and that it does not leave out yet."""
    from mudg_core.encode.shard import METADATA
    from tasks.index import removed_from

    if version is None:
        return []
    files = (store.file(ref, METADATA) for ref in version.embeddings)
    rows = {row for path in files for row in more.rows_in(path)}
    return sorted(rows - set(removed_from(store, version.index)))


def _takedown_text(result: Json) -> str:
    counts = Counter(name.partition("/")[0] for name in result["touched"])
    counts["index"] = len(result["rows"])
    lines = [(kind, f"{counts[kind]:,}", words) for kind, words in WHAT.items() if counts[kind]]
    parts = [table_of(lines, ("", "", "what happens to it"))] if lines else ["nothing in the store has it"]
    if result["touched"]:
        few = (name.partition("/") for name in [*result["touched"]][:20])
        parts.append("\n".join(f"{stage}/{key[:12]}" for stage, _, key in few))
    if result["dry_run"]:
        parts.append("nothing was changed (--dry-run)")
    else:
        parts.append(f"current index: {result['index']}" if result["index"] else "later builds leave it out")
    return "\n\n".join(parts)
