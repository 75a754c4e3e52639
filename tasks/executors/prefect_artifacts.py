"""What a run shows of itself in Prefect's UI: tables, texts and links beside the run.

Prefect keeps artifacts in its database and sends them to browsers whole, so all of them have a limit and say
where the rest is. Class names and captions come from strangers, and the UI takes text for markdown with HTML
in it: such text goes through `escape_markdown`. Nothing here can fail a run.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.context import FlowRunContext, TaskRunContext

log = logging.getLogger(__name__)

# Prefect's own limits are 100,000 characters for the message of a state and half a megabyte for parameters.
# It has none for artifacts, but every list of them is sent with their content.
MOST_BYTES = 64 << 10
MOST_ROWS = 100
MOST_TEXT = 500

# Nothing of this begins markup, wherever in a line it stands. Underscores do, unless they are inside a word.
_HARMLESS = re.compile(r"(?:[^\W_]|(?<=[^\W_])_(?=[^\W_])|[ .,;:()'\"%/+?=°–—’…±×→@-])*")
_BECOMES_A_LINK = re.compile(r"://|www\.|@\w+\.", re.IGNORECASE)
_SIGNED = re.compile(r"X-Amz-[^\s\"'<>)]*", re.IGNORECASE)
_warned: set[UUID | None] = set()

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """One artifact of Prefect's; `kind` is its name for it: table, markdown."""

    kind: str
    key: str
    data: str
    about: str


def escape_markdown(text: str, most: int = MOST_TEXT) -> str:
    """Text of a stranger as nothing but text: bare where no reader of markdown can take it for more, and else
    as code, inside which nothing is markup."""
    visible = ("" if unicodedata.category(c) == "Cf" else " " if _is_blank(c) else c for c in text)
    plain = " ".join("".join(visible).split())
    if len(plain) > most:
        plain = plain[: most - 1] + "…"
    if _HARMLESS.fullmatch(plain) and not _BECOMES_A_LINK.search(plain):
        return plain
    return f"`{plain.replace('`', chr(39)).strip()}`"


def _is_blank(character: str) -> bool:
    return unicodedata.category(character)[0] in "CZ"


def link_to(words: str, address: str) -> str:
    """A link in markdown. Browsers follow no link from a page of the web to a file, so that is only told."""
    if address.startswith("file:"):
        return f"{words}: `{address}`"
    return f"[{words}](<{address}>)"


def table(key: str, about: str, rows: Sequence[Row], whole: str = "") -> Shown:
    """The first rows, and how many more there are; `whole` says where."""
    shown = [_cells(row) for row in rows[:MOST_ROWS]]
    while len(data := json.dumps(shown)) > MOST_BYTES:
        shown = shown[: len(shown) // 2]
    if len(shown) < len(rows):
        about += f"\n\nThe first {len(shown):,} of {len(rows):,} rows" + (f"; all: {whole}" if whole else ".")
    return Shown("table", key_of(key), data, about)


def _cells(row: Row) -> dict[str, Any]:
    """Prefect's older UI takes cells for markdown too."""
    return {
        escape_markdown(name): value if isinstance(value, int | float) else escape_markdown(str(value))
        for name, value in row.items()
    }


def markdown(key: str, about: str, lines: Sequence[str], whole: str = "") -> Shown:
    """Whole lines only, so that no link is cut in half."""
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > MOST_BYTES:
            kept.append(f"\n… and {len(lines) - len(kept):,} lines more" + (f": {whole}" if whole else "."))
            break
        kept.append(line)
    return Shown("markdown", key_of(key), "\n".join(kept), about)


def link(key: str, about: str, words: str, address: str) -> Shown:
    return Shown("markdown", key_of(key), link_to(words, address), about)


def key_of(text: str) -> str:
    """Prefect's keys are of lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:200]


def show(make: Callable[[], Sequence[Shown]]) -> None:
    """Puts beside the current run whatever `make` returns. Whatever goes wrong with that costs a warning."""
    flow_run, _ = current_run()
    if flow_run is None:
        return
    try:
        for shown in make():
            create(get_client(sync_client=True), shown.kind, shown.key, shown.data, shown.about)
    except Exception as error:  # of a store or a server that is away, or ours: the run's work is done
        warn_once(flow_run, error)


def create(client: SyncPrefectClient, kind: str, key: str, data: str | float, about: str) -> UUID:
    flow_run, task_run = current_run()
    asked = ArtifactCreate(
        type=kind, key=key, data=data, description=about, flow_run_id=flow_run, task_run_id=task_run
    )
    return client.create_artifact(asked).id


def current_run() -> tuple[UUID | None, UUID | None]:
    """(flow run, task run); nothing in a notebook or a test."""
    if task := TaskRunContext.get():
        return task.task_run.flow_run_id, task.task_run.id
    flow = FlowRunContext.get()
    return (flow.flow_run.id if flow and flow.flow_run else None), None


def warn_once(flow_run: UUID | None, error: Exception) -> None:
    """Of what the UI will not show. Once for each run, as the reason is the same for all of it; and without
    what makes a signed link open, as a server may repeat in its refusal what it was sent."""
    if flow_run not in _warned:
        _warned.add(flow_run)
        reason = _SIGNED.sub("…", str(error))[:300]
        log.warning("the Prefect UI will not show all of this run: %s: %s", type(error).__name__, reason)
