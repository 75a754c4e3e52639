"""The `mudg` command."""

import os

# The command shows stages and errors itself. Set before Prefect and Dask are imported.
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")

from flows.cli.app import main

__all__ = ["main"]
