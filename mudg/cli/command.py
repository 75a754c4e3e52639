"""One way to declare a command: the flags that all share, its settings, what it prints and its exit code.

A command is a function that returns an `Output`. A parameter `settings` gets the settings of the call, and
`store` the store that they name; `flags` is for commands that load settings later, or on top of a file of
their own. Modules that take long to load (pydantic is one) are imported in the body of the command that needs
them, so that `--help` is quick.
"""

from __future__ import annotations

import errno
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from mudg.cli.output import console, say, show
from mudg.ops.stack import FOLDER
from mudg_core.errors import MudgError, SettingsError

if TYPE_CHECKING:
    from mudg.ops.stack.running import Stack
    from mudg_core.settings import Json, Settings

F = TypeVar("F", bound=Callable[..., "Output | None"])
REFUSED_BY_DISK = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)

AsJson = Annotated[bool, Option("--json", help="Print the result as one JSON object on the last line.")]
SettingsFiles = Annotated[
    list[str] | None,
    Option(
        "--settings", "-s", metavar="FILE", help="Settings file (YAML), or AREA.NAME=VALUE; may be repeated."
    ),
]
Changes = Annotated[
    list[str] | None, Option("--set", metavar="AREA.NAME=VALUE", help="Change one setting; may be repeated.")
]


class Output(NamedTuple):
    """What a command prints on standard output: one JSON object with --json, or else text."""

    result: Json
    text: str
    exit_code: int = 0


@dataclass(frozen=True)
class Flags:
    """What every command is called with."""

    files: tuple[str, ...]
    changes: tuple[str, ...]
    as_json: bool

    def settings(self, base: Path | None = None, *, hint: bool = True, more: Sequence[str] = ()) -> Settings:
        return settings_from(self.files, (*self.changes, *more), base, hint=hint)


def group(text: str) -> typer.Typer:
    """Commands with a common first word."""
    return typer.Typer(cls=Group, no_args_is_help=True, help=text)


def command(app: typer.Typer, name: str, *, hidden: bool = False) -> Callable[[F], F]:
    """Declares a command of `app`. The function itself stays callable as it is."""

    def declare(function: F) -> F:
        app.command(name, cls=Command, hidden=hidden)(_entry(function))
        return function

    return declare


def _entry(function: Callable[..., Output | None]) -> Callable[..., None]:
    """The function as typer calls it. Types are looked up without importing settings."""
    hints = get_type_hints(
        function, localns=dict.fromkeys(("Settings", "ArtifactStore"), Any), include_extras=True
    )
    own = inspect.signature(function).parameters
    injected = own.keys() & {"settings", "store", "flags"}
    shared: dict[str, Any] = {"as_json": AsJson} if "as_json" not in own else {}
    shared |= {"files": SettingsFiles, "changes": Changes} if injected else {}

    def entry(**values: Any) -> None:
        as_json = bool(values["as_json"])
        given = {name: values.pop(name) for name in shared}
        flags = Flags(tuple(given.get("files") or ()), tuple(given.get("changes") or ()), as_json)
        with exit_codes(as_json):
            output = function(**values, **_injected(injected, flags))
            if output is not None:
                show(output.result, output.text, as_json)
                if output.exit_code:
                    raise typer.Exit(output.exit_code)

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        item.replace(kind=kind, annotation=hints[name]) for name, item in own.items() if name not in injected
    ]
    parameters += [
        inspect.Parameter(name, kind, default=False if name == "as_json" else None, annotation=hint)
        for name, hint in shared.items()
    ]
    entry.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    entry.__annotations__ = {item.name: item.annotation for item in parameters}
    entry.__doc__ = function.__doc__
    return entry


def _injected(names: Set[str], flags: Flags) -> dict[str, Any]:
    values: dict[str, Any] = {"flags": flags}
    if "flags" not in names:
        values["settings"] = flags.settings()
    if "store" in names:
        from mudg_core.storage import ArtifactStore

        values["store"] = ArtifactStore(values["settings"].storage)
    return {name: values[name] for name in names}


class _PlainHelp:
    """Help without noise: typer shows `<bool>` beside a flag, and braces around an argument's name."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if param.metavar is None and param.param_type_name == "argument":
                param.metavar = param.name.upper() + ("..." if param.nargs != 1 else "")
            elif param.metavar is None and getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class Command(_PlainHelp, TyperCommand):
    """One command."""


class Group(_PlainHelp, TyperGroup):
    """Commands with a common first word."""


def settings_from(
    files: Sequence[str], changes: Sequence[str], base: Path | None = None, *, hint: bool = True
) -> Settings:
    """Settings of a call; `base` is a file of the command's own that the user's go on top of. `hint`: say so
    if a stack runs here that these settings do not use, as its store would seem to be empty."""
    from mudg_core.settings import load_settings

    paths = [Path(item) for item in files if "=" not in item or Path(item).exists()]
    changes = [*(item for item in files if Path(item) not in paths), *changes]
    settings = load_settings(paths, _tree(changes), defaults=base)
    if hint and (stack := unused_stack(settings)) is not None:
        say(f"the stack that runs here has a store of its own: source {stack.folder}/env to use it", "yellow")
    return settings


def _tree(changes: Sequence[str]) -> Json:
    """`index.cells=256` as {"index": {"cells": 256}}."""
    import yaml

    from mudg_core.yaml_text import load

    tree: Json = {}
    for change in changes:
        path, equals, value = change.partition("=")
        if not equals:
            raise SettingsError(what=f"--set {change}: no =", fix="write --set index.cells=256")
        node = tree
        *areas, leaf = path.split(".")
        for area in areas:
            node = node.setdefault(area, {})
        try:
            node[leaf] = load(value)
        except yaml.YAMLError as error:
            raise SettingsError(what=f"--set {path}: not a YAML value: {error}", fix="quote it") from error
    return tree


def unused_stack(settings: Settings) -> Stack | None:
    """One that `mudg up` has started in this folder, if environment and settings name no other place."""
    if not FOLDER.is_dir() or os.environ.get("PREFECT_API_URL"):
        return None
    if settings.storage.url != type(settings)().storage.url:
        return None
    from mudg.ops.stack.running import find_stack

    try:
        return find_stack()
    except MudgError:  # its record is damaged, which `mudg doctor` reports
        return None


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
