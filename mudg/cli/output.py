"""What every command shares: settings from its flags, results as text or JSON, errors as exit codes."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from mudg.ops.stack.running import Stack, find_stack
from mudg_core.errors import MudgError, SettingsError
from mudg_core.settings import Json, Settings, load_settings
from mudg_core.target.class_names import lookalikes
from mudg_core.visible import one_line, visible
from mudg_core.yaml_text import load as load_yaml

console = Console(stderr=True)
REFUSED_BY_DISK = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on the last line.")]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", "-s", help="Settings file (YAML).", show_default=False)
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="AREA.NAME=VALUE", help="Change one setting; may be repeated.", show_default=False
    ),
]


def settings_from(
    file: Path | None, changes: Sequence[str] | None, base: Path | None = None, *, hint: bool = True
) -> Settings:
    """Settings of this command; `base` is a file of its own that the user's file goes on top of. Whoever has
    a stack here and does not use it is told so, as the store would seem to be empty."""
    tree: Json = {}
    for change in changes or ():
        path, equals, value = change.partition("=")
        if not equals:
            raise SettingsError(what=f"--set {change}: no =", fix="write --set index.cells=256")
        node = tree
        *areas, leaf = path.split(".")
        for area in areas:
            node = node.setdefault(area, {})
        try:
            node[leaf] = load_yaml(value)
        except yaml.YAMLError as error:
            raise SettingsError(what=f"--set {path}: not a YAML value: {error}", fix="quote it") from error
    settings = load_settings([file] if file else [], tree, defaults=base)
    if hint and (stack := unused_stack(settings)) is not None:
        said = f"the stack that runs here has a store of its own: source {stack.folder}/env to use it"
        console.print(said, style="yellow", markup=False, highlight=False, soft_wrap=True)
    return settings


def unused_stack(settings: Settings) -> Stack | None:
    """One that `mudg up` has started in this folder, if environment and settings name no other place."""
    named = os.environ.get("PREFECT_API_URL") or settings.storage.url != Settings().storage.url
    try:
        return None if named else find_stack()
    except MudgError:  # its record is damaged, which `mudg doctor` tells
        return None


def show(result: Json, text: str, as_json: bool) -> None:
    """The result on standard output; everything else a command says goes to standard error."""
    sys.stdout.write((json.dumps(result) if as_json else visible(text.rstrip())) + "\n")
    sys.stdout.flush()


@contextmanager
def exit_codes(as_json: bool) -> Iterator[None]:
    """Our errors, and those of a disk that is full or not ours to write, become a message and an exit code;
    anything else keeps its traceback, it is a bug."""
    try:
        yield
    except MudgError as error:
        raise _shown(error, as_json) from None
    except OSError as error:
        if error.errno not in REFUSED_BY_DISK:
            raise
        from mudg_core.storage.objects_local import disk_error

        raise _shown(disk_error(error, str(error.filename or "")), as_json) from None


def _shown(error: MudgError, as_json: bool) -> typer.Exit:
    if as_json:
        body = {"error": type(error).__name__, "what": error.what, "where": error.where, "fix": error.fix}
        sys.stdout.write(json.dumps(body) + "\n")
    console.print(f"[bold red]{type(error).__name__}[/]", end=": ", highlight=False)
    console.print(str(error), markup=False, highlight=False)
    return typer.Exit(error.exit_code)


def warn_of_lookalikes(classes: Sequence[str]) -> None:
    """Before anything runs: two names that look the same are rarely two classes."""
    for first, second in lookalikes(classes)[:10]:
        said = f"warning: classes {first!a} and {second!a} look the same: are they two?"
        console.print(said, style="yellow", markup=False, highlight=False, soft_wrap=True)


def quiet_libraries() -> None:
    """A terminal is for people: libraries speak up when something is wrong, not before."""
    warnings.simplefilter("ignore")
    logging.getLogger("httpx").setLevel(logging.ERROR)


def table_of(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> str:
    """Plain aligned columns: readable in a terminal, in a log and in a mail."""
    lines = [[one_line(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    )
