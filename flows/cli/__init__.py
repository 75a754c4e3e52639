"""The `mudg` command."""

from flows.cli.app import main

__all__ = ["main"]
