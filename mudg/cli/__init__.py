"""The `mudg` command."""

import gc
import os
import sys

if sys.platform == "win32":  # before anything else is imported: some of it does not even load there
    sys.stderr.write("mudg does not run on Windows itself. Use WSL: `wsl --install`, then as on Linux.\n")
    raise SystemExit(2)

# The command shows stages and errors itself. Set before Prefect and Dask are imported.
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")

from mudg.cli.interrupts import run_interruptibly

__all__ = ["main"]


def main() -> None:
    """Entry point of the console command."""
    run_interruptibly(_command)


def _command() -> None:
    """Importing it all takes a second, in which Ctrl-C may come. What is imported stays, so looking for
    garbage among it is a waste of a tenth of that time."""
    gc.set_threshold(50_000)
    from mudg.cli.app import app
    from mudg.cli.terminal import guard_terminal

    guard_terminal()
    app()
