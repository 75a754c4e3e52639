"""What importing the flows says to the libraries below them."""

from __future__ import annotations

import subprocess
import sys

from tests.support.demo_runs import environment

ASK = "import tasks.executors, urllib.request as r; print([bool(r.proxy_bypass(h)) for h in {!r}])"


def test_a_proxy_is_not_asked_for_servers_on_this_machine() -> None:
    """And what the user has said of others stays, however it was spelled."""
    hosts = ("127.0.0.1", "localhost", "our.example", "theirs.example")
    given = environment(HTTP_PROXY="http://proxy.example:3128", NO_PROXY="our.example", no_proxy="")
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(hosts)],
        env=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[True, True, True, False]"
