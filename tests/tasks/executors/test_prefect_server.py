"""The private Prefect server."""

from __future__ import annotations

from prefect.client.orchestration import PrefectClient

from tasks.executors.prefect_server import server_command


def test_connections_are_kept_longer_than_clients_keep_them() -> None:
    """A client that finds its connection closed waits for seconds before it asks again."""
    command = server_command(4200)
    kept = float(command[command.index("--timeout-keep-alive") + 1])
    transport = PrefectClient("http://127.0.0.1:4200/api")._client._transport
    assert kept > transport._pool._keepalive_expiry  # type: ignore[attr-defined]
