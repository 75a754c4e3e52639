"""Environments: settings as variables, and what of the user's own shell a part of the stack is given."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from mudg_core.settings import ENV_PREFIX, Settings, load_settings

# Of the user's shell. Settings are handed on by name, and a stack has its own Prefect and keys: a shell's
# API, profile or token would lead its parts elsewhere. `mudg` itself has silenced Dask for the terminal.
FOREIGN = (ENV_PREFIX, "PREFECT_", "DASK_LOGGING", "AWS_")
KEPT = ("PREFECT_SERVER_ANALYTICS_ENABLED",)
# Settings that a stack answers itself. A shell that has sourced a stack's environment names them too.
PLACES = tuple(f"{ENV_PREFIX}STORAGE__{name}" for name in ("URL", "ENDPOINT_URL", "BROWSE_URL", "CACHE_DIR"))
PLACES += (f"{ENV_PREFIX}COMPUTE__DASK_ADDRESS",)


def settings_environment(settings: Settings) -> dict[str, str]:
    """The variables that give another process these settings, wherever they came from: file, shell or flags.
    Only what differs from the defaults, so that a list of them can be read."""
    plain = load_settings(overrides={"profile": settings.profile}, environ={}).model_dump(mode="json")
    given: dict[str, str] = {} if settings.profile == "mudg" else {f"{ENV_PREFIX}PROFILE": settings.profile}
    for area, values in settings.model_dump(mode="json").items():
        if isinstance(values, dict):
            changed = {name: value for name, value in values.items() if value != plain[area][name]}
            given |= {f"{ENV_PREFIX}{area}__{name}".upper(): scalar(v) for name, v in changed.items()}
    return given


def scalar(value: Any) -> str:
    """As the settings read it back. Not JSON: YAML takes 1e-05 for text."""
    text = yaml.safe_dump(value, default_flow_style=True, width=2**31, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def given_to_stack(settings: Settings) -> dict[str, str]:
    """The user's settings for all that runs in a stack, with paths that hold in any folder."""
    given = settings_environment(_anchored(settings))
    return {name: value for name, value in given.items() if name not in PLACES}


def _anchored(settings: Settings) -> Settings:
    from mudg_core.target.paths import absolute_settings

    tree = settings.model_dump(mode="json", exclude={"profile"}, exclude_none=True)
    return settings.replace(absolute_settings(tree), where="settings")


def inherited() -> dict[str, str]:
    """This shell's environment without what is the stack's to say."""
    return {name: value for name, value in os.environ.items() if name in KEPT or not name.startswith(FOREIGN)}


def as_script(environment: Mapping[str, str]) -> str:
    """What a shell can `source`."""
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    return "# Makes `mudg` use this stack: source this file. It holds a secret.\n" + "".join(lines)
