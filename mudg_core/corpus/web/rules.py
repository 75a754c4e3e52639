"""What the guard lets through, and how it says no."""

from __future__ import annotations

from dataclasses import dataclass

from mudg_core.corpus.web.addresses import Network

# Words of these two alone are read back from an error message; see reasons.py.
REFUSED = "refused by mudg: "
FAILED = "mudg could not: "


@dataclass(frozen=True)
class Rules:
    """Limits of every connection. `idle_seconds` is the longest wait for a connection or for the next bytes,
    `max_seconds` for everything together: a server that drips keeps the first and not the second."""

    max_bytes: int
    max_seconds: float
    idle_seconds: float
    ports: frozenset[int] = frozenset({80, 443})
    allowed: tuple[Network, ...] = ()
    connections: int = 64
    header_bytes: int = 64 * 2**10

    @property
    def tunnel_bytes(self) -> int:
        """As many bytes as a body of `max_bytes` takes with its headers once TLS has wrapped it."""
        return self.max_bytes + self.max_bytes // 64 + 2 * self.header_bytes


class StoppedError(Exception):
    """The guard ends an exchange; `reason` is short and never changes, for it is counted."""

    def __init__(self, reason: str, *, status: int = 403) -> None:
        super().__init__(reason)
        self.reason, self.status = reason, status

    @property
    def phrase(self) -> str:
        """For the status line: a client shows it in its own error message."""
        return (REFUSED if self.status == 403 else FAILED) + self.reason


def dead_host() -> StoppedError:
    return StoppedError("dead host", status=502)


def cut_off() -> StoppedError:
    return StoppedError("connection cut", status=502)


def timed_out() -> StoppedError:
    return StoppedError("timed out", status=504)
