"""The `mudg` command."""

import os

# A terminal is for people: the command shows stages and errors itself. Set before Prefect and Dask are imported.
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")

from flows.cli.app import main  # noqa: E402

__all__ = ["main"]
