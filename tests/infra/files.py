"""The files, and what all tests of them ask."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dask
import yaml
from prefect.settings.legacy import _get_settings_fields
from prefect.settings.models.root import Settings as PrefectSettings

from mudg_core.settings import load_settings

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = (ROOT / "requirements.lock").read_text().splitlines()
LOCK = dict(line.partition(" ;")[0].split("==") for line in LINES)
# An innermost one, as the default of a variable may name another.
INTERPOLATED = re.compile(r"\$\{(\w+)(?::?([-?])([^${}]*))?\}")
SECRET = re.compile(r"PASSWORD|SECRET|AUTH|ACCESS_KEY|CONNECTION_URL")


def load(path: str) -> Any:
    return yaml.safe_load((INFRA / path).read_text())


def filled(text: str, given: Mapping[str, str] | None = None) -> str:
    """As compose fills in variables: with what was given, else the default; what must be set is `given`."""
    known = given or {}
    while INTERPOLATED.search(text):
        text = INTERPOLATED.sub(
            lambda found: known.get(found[1], found[3] if found[2] == "-" else "given"), text
        )
    return text


def check_environment(environment: Mapping[str, str]) -> None:
    """Every variable of ours, of Prefect and of Dask means something to who reads it."""
    load_settings(environ=environment)
    known = _get_settings_fields(PrefectSettings)
    unknown = {name for name in environment if name.startswith("PREFECT_") and name not in known}
    assert not unknown, unknown
    for name in environment:
        if name.startswith("DASK_"):
            dask.config.get(name.removeprefix("DASK_").lower().replace("__", "."))


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """`a.b.c` and its value; lists are values."""
    if not isinstance(tree, dict) or not tree:
        yield path, tree
        return
    for key, value in tree.items():
        yield from leaves(value, f"{path}.{key}" if path else key)
