"""Which Prefect server and store a command talks to. Imports no Prefect: it reads its settings on import."""

from __future__ import annotations

import os
from pathlib import Path

from mudg.ops.stack.running import use_stack
from mudg_core.errors import OrchestrationError

VARIABLE = "PREFECT_API_URL"


def use_servers(folder: Path | None = None) -> None:
    """The servers that the environment names, or those that `mudg up` started here, with their store and its
    keys. A Prefect profile of the user's (`prefect config set`) is asked last."""
    use_stack(folder)
    if not os.environ.get(VARIABLE) and not _profile():
        raise OrchestrationError(
            what="there is no Prefect server to talk to",
            where=VARIABLE,
            fix="start one here with `mudg up`, or set PREFECT_API_URL (and storage.url) to your team's",
        )


def _profile() -> str | None:
    from prefect.settings import PREFECT_API_URL

    found: str | None = PREFECT_API_URL.value()
    return found
